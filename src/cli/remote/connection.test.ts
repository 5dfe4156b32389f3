import { expect, it } from 'vitest'
import { accessTo } from './connection.js'

const accessAt = (apiUrl: string) =>
  accessTo({ origin: 'the environment', profile: { apiUrl, email: 'a@example.com', apiKey: 'key' } }, 'management')

it('the command line accepts the URL of a server with or without a trailing slash', () => {
  expect(accessAt('https://example.com/api//').url).toBe('https://example.com/api')
  expect(accessAt('http://127.0.0.1:8700').url).toBe('http://127.0.0.1:8700')
})

it.each(['example.com', 'localhost:8700', 'ftp://example.com', 'https://'])(
  'refuses %s as the URL of a server',
  (url) => {
    expect(() => accessAt(url)).toThrow(/^The URL of the management service in the environment is not valid: .*https:/)
  },
)

it('the command line refuses a URL with a password, and does not show it', () => {
  expect(() => accessAt('https://ann:secret@example.com')).toThrow(/^(?!.*secret).*without a user/)
})
