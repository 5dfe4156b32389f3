import { expect, it } from 'vitest'
import { parseDestination } from './destination.js'
import { refuseSetting } from './setting-values.js'

it('a URL with a password is refused without repeating the password', () => {
  const url = 'https://ada:s3cret@example.com/hook'
  expect(() => parseDestination(url)).toThrow('The destination is "https://…@example.com/hook"; a URL must not hold')
  expect(() => parseDestination(encodeURIComponent(url))).toThrow('"https://…@example.com/hook"')
  expect(() => refuseSetting('Upstash-Callback', url, 'send another')).toThrow('is "https://…@example.com/hook"; send')
})

it('the refusal of a URL repeats an @ that belongs to no password', () => {
  const url = 'https://example.com/@ada?to=a@b.c'
  expect(() => refuseSetting('Upstash-Callback', url, 'send another')).toThrow(`is "${url}"`)
  expect(parseDestination(url).url).toBe(url)
})
