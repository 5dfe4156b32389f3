import { expect, it } from 'vitest'
import { accessTo } from './connection.js'

const accessAt = (apiUrl: string) =>
  accessTo({ origin: 'the environment', profile: { apiUrl, email: 'a@example.com', apiKey: 'key' } }, 'management')

it('takes the URL of a server with or without a slash at its end', () => {
  expect(accessAt('https://example.com/api//').url).toBe('https://example.com/api')
  expect(accessAt('http://127.0.0.1:8700').url).toBe('http://127.0.0.1:8700')
})

it.each(['example.com', 'localhost:8700', 'ftp://example.com', 'https://'])(
  'says of %s that it is no URL of a server',
  (url) => {
    expect(() => accessAt(url)).toThrow(/^The URL of the management service in the environment leads nowhere: .*https:/)
  },
)

it('neither takes nor shows a URL with a password', () => {
  expect(() => accessAt('https://ann:secret@example.com')).toThrow(/^(?!.*secret).*name no user/)
})
