import { expect, it } from 'vitest'
import type { DatabaseRow } from '../life.js'
import { configGet, configSet } from './configuration.js'

const isFound = (...patterns: string[]): boolean =>
  configGet({ keyspace_events: 'AKE' } as DatabaseRow, patterns).length > 0

it.each([
  ['*', true],
  ['**', true],
  ['notify-keyspace-events', true],
  ['Notify-*', true],
  ['*keyspace*', true],
  ['notify?keyspace?events', true],
  ['*?events', true],
  ['*e*e*e*s', true],
  ['', false],
  ['notify', false],
  ['?', false],
  ['*x', false],
  ['notify-keyspace-events?', false],
  ['n.*', false],
  ['[n]*', false],
])('a client that asks for %s finds the setting: %s', (pattern, expected) => {
  expect(isFound(pattern)).toBe(expected)
})

it('answers patterns that fit in very many ways and then do not as fast as others', () => {
  const pattern = `${'*?'.repeat(11)}z`
  // Tried one way after the other, each of them would take a tenth of a second.
  expect(isFound(...Array.from({ length: 10_000 }, () => pattern))).toBe(false)
})

it('reads thousands of settings in time', { timeout: 4_000 }, () => {
  const args = Array.from({ length: 40_000 }, () => ['notify-keyspace-events', 'KEA']).flat()
  expect(configSet(args)).toEqual({ events: 'AKE' })
})
