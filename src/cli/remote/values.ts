import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../../base/index.js'
import type { StateWord, StateWords } from '../../contract/words/states.js'

/** Parsers of flag values. */

/** A whole number in a range. */
export const wholeNumber =
  (least: number, most = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`
    throw new InvalidArgumentError(`Expected a whole number, ${range}.`)
  }

/** A whole number that may be negative. */
export function signed(text: string): number {
  if (/^[+-]?\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number, such as 60 or -60.')
}

/** A comma-separated list; the flag may be repeated. */
export const list = (text: string, before: readonly string[] = []): string[] => [
  ...before,
  ...text.split(',').map((one) => one.trim()),
]

/** A value that may contain commas; the flag may be repeated. */
export const repeated = (text: string, before: readonly string[] = []): string[] => [...before, text]

/**
 * A time: `1h` means an hour ago, `2026-11-21T10:00Z` is a date, a plain number is Unix milliseconds.
 * @returns Unix milliseconds.
 */
export function instant(text: string): number {
  const agoMs = parseDuration(text)
  return agoMs === undefined ? dateOf(text, 'an hour ago') : Date.now() - agoMs
}

function dateOf(text: string, relative: string): number {
  const atMs = /^\d{10,}$/.test(text) ? Number(text) : Date.parse(text)
  if (Number.isSafeInteger(atMs) && /\d{4}/.test(text)) return atMs
  const expected = `Expected "1h" (${relative}), a date such as 2026-11-21T10:00Z, or Unix milliseconds.`
  throw new InvalidArgumentError(expected)
}

/**
 * A time in the future: `1h` means in an hour; otherwise as `instant`.
 * @returns Unix milliseconds.
 */
export function futureInstant(text: string): number {
  const inMs = parseDuration(text)
  return inMs === undefined ? dateOf(text, 'in an hour') : Date.now() + inMs
}

/** A duration such as `30s` or `1d12h`, returned unchanged. */
export function durationText(text: string): string {
  if (parseDuration(text) !== undefined) return text
  throw new InvalidArgumentError('Expected a duration such as 30s, 5m or 1d12h.')
}

/** One of several words. */
export const oneOf =
  <const Word extends string>(words: readonly Word[]) =>
  (text: string): Word => {
    const found = words.find((word) => word === text)
    if (found !== undefined) return found
    throw new InvalidArgumentError(`Expected one of: ${words.join(', ')}.`)
  }

/** The words for states, for the help of a flag. */
export const wordsOf = (words: StateWords<string>): string =>
  [...new Set(Object.values(words).map(({ word }) => word))].join(', ')

/** A state by its word, such as `failed`, or by its name on the wire, such as `RUN_FAILED`. */
export const stateNamed =
  <State extends string>(words: StateWords<State>) =>
  (text: string): State => {
    const wanted = text.toLowerCase().replaceAll('-', ' ')
    // The names of the entries are those of the table.
    for (const [state, { word }] of Object.entries<StateWord>(words))
      if (state === text || word === wanted) return state as State
    throw new InvalidArgumentError(`Expected one of: ${wordsOf(words)}.`)
  }

/** A pair `Name: value` or `name=value`; the flag may be repeated. */
export function pair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const found = /^([\w.-]+)\s*[:=]\s*(.*)$/s.exec(text)
  if (found?.[1] === undefined) throw new InvalidArgumentError('Expected "Name: value".')
  return { ...before, [found[1]]: found[2] ?? '' }
}

/** Removes undefined fields, so that only given flags are sent. */
export function given<Value extends object>(value: Value): { [Key in keyof Value]: NonNullable<Value[Key]> } {
  const entries = Object.entries(value).filter(([, one]) => one !== undefined)
  // The types of the callers say which fields are optional.
  return Object.fromEntries(entries) as { [Key in keyof Value]: NonNullable<Value[Key]> }
}
