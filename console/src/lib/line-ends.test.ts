import { expect, it } from 'vitest'
import { lineEndsOf, withLineEndsOf } from './line-ends.js'

it.each([
  ['a', '\n'],
  ['a\nb', '\n'],
  ['a\r\nb\r\n', '\r\n'],
  ['a\r\nb\n', 'mixed'],
  ['a\rb', 'mixed'],
])('the line ends of %j are found', (text, ends) => {
  expect(lineEndsOf(text)).toBe(ends)
})

it('line ends stay as they were when a text area has edited the text', () => {
  expect(withLineEndsOf('a\r\nb', 'a\nb\nc')).toBe('a\r\nb\r\nc')
  expect(withLineEndsOf('a\r\nb', 'a\r\nb')).toBe('a\r\nb')
  expect(withLineEndsOf('a\nb', 'a\nc')).toBe('a\nc')
})
