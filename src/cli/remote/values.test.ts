import { expect, it } from 'vitest'
import { durationText, futureInstant, given, instant, list, oneOf, pair, wholeNumber } from './values.js'

it('the parser parses a time as a duration ago, a date or milliseconds', () => {
  const before = Date.now()
  expect(instant('1h')).toBeGreaterThanOrEqual(before - 3_600_000)
  expect(instant('1h')).toBeLessThanOrEqual(Date.now() - 3_600_000)
  expect(instant('2026-11-21T10:00Z')).toBe(Date.UTC(2026, 10, 21, 10))
  expect(instant('1763719200000')).toBe(1763719200000)
  for (const wrong of ['', 'yesterday', '12', '-1h', '1763719200000x'])
    expect(() => instant(wrong), wrong).toThrow(/Expected "1h"/)
})

it('the parser parses a time in the future, where a duration is from now on', () => {
  const before = Date.now()
  expect(futureInstant('1h')).toBeGreaterThanOrEqual(before + 3_600_000)
  expect(futureInstant('2026-11-21T10:00Z')).toBe(Date.UTC(2026, 10, 21, 10))
  expect(() => futureInstant('tomorrow')).toThrow('"1h" (in an hour)')
})

it('the parser parses whole numbers, and names the range in the error', () => {
  expect(wholeNumber(0, 9)('9')).toBe(9)
  for (const wrong of ['10', '-1', '1.5', '1e1', '', ' 1'])
    expect(() => wholeNumber(0, 9)(wrong), wrong).toThrow('0 to 9')
})

it('the parser parses lists, pairs, words and durations', () => {
  expect(list('b, c', ['a'])).toEqual(['a', 'b', 'c'])
  expect(pair('X-Two: b: c', { 'X-One': 'a' })).toEqual({ 'X-One': 'a', 'X-Two': 'b: c' })
  expect(() => pair('nothing')).toThrow('Name: value')
  expect(oneOf(['on', 'off'])('on')).toBe('on')
  expect(() => oneOf(['on', 'off'])('of')).toThrow('on, off')
  expect(durationText('1d12h')).toBe('1d12h')
  expect(() => durationText('12')).toThrow('duration')
})

it('keeps given fields, also zero, false and empty ones', () => {
  expect(given({ a: 0, b: false, c: '', d: undefined })).toEqual({ a: 0, b: false, c: '' })
})
