import { expect, it } from 'vitest'
import { indentJson, roundedIn } from './json-text.js'

it.each([{ a: [1, { b: 'x, "{y}": \\ [' }], c: {}, d: [], e: null }, [[], [true, -1.5e-7]], 'text', 'a\\', 7])(
  'the text of %j is indented as by JSON.stringify',
  (value) => {
    expect(indentJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2))
    expect(indentJson(JSON.stringify(value, null, 7))).toBe(JSON.stringify(value, null, 2))
  },
)

it('indenting keeps every digit, and numbers that a program would round are found', () => {
  const json = '{"id":12345678901234567890,"half":0.10}'
  expect(indentJson(json)).toBe('{\n  "id": 12345678901234567890,\n  "half": 0.10\n}')
  expect(roundedIn(json)).toBe('12345678901234567890')
  expect(roundedIn('{"12345678901234567890":[9007199254740991,1.5]}')).toBeUndefined()
})

it('a text that is nested too deeply stays as it is', () => {
  expect(indentJson('['.repeat(200) + ']'.repeat(200))).toBeUndefined()
})
