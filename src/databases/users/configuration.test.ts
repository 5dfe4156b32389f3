import { describe, expect, it } from 'vitest'
import { unitMs, workMs } from '../../../test/support/index.js'
import { servedRow } from '../testing/rows.js'
import { configGet, configSet, type SettingFacts } from './configuration.js'
import { effectiveSettings } from './settings.js'

const row = servedRow({ keyspace_events: 'AKE' })
const facts: SettingFacts = {
  eviction: false,
  scriptTimeoutMs: 250,
  maxMemoryBytes: 1000,
  maxClients: 10,
  defaults: new Map([
    ['hash-max-listpack-entries', '128'],
    ['hash-max-ziplist-entries', '128'],
    ['maxmemory-policy', 'noeviction'],
    ['maxmemory', '0'],
    ['busy-reply-threshold', '250'],
    ['lua-time-limit', '250'],
    ['stream-node-max-bytes', '4096'],
    ['latency-tracking-info-percentiles', '50 99 99.9'],
    ['slowlog-max-len', '128'],
    ['tracking-table-max-keys', '1000000'],
  ]),
}

const EVENTS = 'notify-keyspace-events'
const isFound = (...patterns: string[]): boolean => configGet(row, facts, patterns).has(EVENTS)
const set = (...args: string[]) => configSet(row, facts, args)

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
])('CONFIG GET %s finds the setting: %s', (pattern, expected) => {
  expect(isFound(pattern)).toBe(expected)
})

it('CONFIG GET matches patterns with many wildcards in linear time', () => {
  const pattern = `${'*?'.repeat(11)}z`
  // With backtracking, each of them would take a tenth of a second.
  expect(isFound(...Array.from({ length: 10_000 }, () => pattern))).toBe(false)
  expect(isFound('*?'.repeat(1_000_000))).toBe(false)
  expect(() => isFound(...Array.from({ length: 65 }, (_, at) => `a${at}`))).toThrow('at most 64')
})

it('CONFIG SET handles thousands of settings in time', () => {
  const args = Array.from({ length: 40_000 }, () => [EVENTS, 'KEA']).flat()
  let found: unknown
  expect(workMs(() => (found = set(...args))) / unitMs()).toBeLessThan(100)
  expect(found).toMatchObject({ set: { keyspace_events: 'AKE' }, problem: expect.stringMatching('duplicate') })
})

describe('settings of the engine', () => {
  it('are shown by all their names, with their default or their set value', () => {
    expect([...configGet(row, facts, ['hash-max-*'])].flat()).toEqual([
      ...['hash-max-listpack-entries', '128', 'hash-max-ziplist-entries', '128'],
    ])
    const changed = { ...row, ...set('HASH-max-ziplist-entries', '20').set }
    expect([...configGet(changed, facts, ['hash-max-listpack-entries', 'maxmemory'])].flat()).toEqual([
      ...['hash-max-listpack-entries', '20', 'maxmemory', '1000'],
    ])
    expect(configSet(changed, facts, [EVENTS, 'KEA']).set).toEqual({ keyspace_events: 'AKE' })
  })

  it.each([
    ['stream-node-max-bytes', '4kb', '4096'],
    ['stream-node-max-bytes', '0', '0'],
    ['latency-tracking-info-percentiles', '50.0 100.0', '50 100'],
    ['latency-tracking-info-percentiles', '', ''],
    ['busy-reply-threshold', '249', '249'],
    ['maxmemory-policy', 'NOEVICTION', 'noeviction'],
    ['maxmemory', '999', '999'],
  ])('%s takes %s', (name, given, stored) => {
    expect(JSON.parse(String(set(name, given).set.engine_settings))).toEqual({ [name]: stored })
  })

  it.each([
    ['hash-max-listpack-entries', '-1'],
    ['hash-max-listpack-entries', 'many'],
    ['hash-max-listpack-entries', '1'.repeat(1_000_000)],
    ['stream-node-max-bytes', '2gb'],
    ['latency-tracking-info-percentiles', '101'],
    ['busy-reply-threshold', '251'],
    ['busy-reply-threshold', '0'],
    ['slowlog-max-len', '1000000'],
    ['tracking-table-max-keys', '0'],
    ['maxmemory-policy', 'allkeys-lru'],
    ['maxmemory', '5000'],
    ['appendonly', 'no'],
    ['save', '1 1'],
    ['dir', '/tmp'],
    ['set-max-listpack-entries', '1'],
    ['__proto__', '1'],
    ['hash-max-listpack-entries\ndir', '1'],
  ])('%s does not take %s', (name, value) => {
    const { set: changes, problem } = set(name, value)
    expect(changes).toEqual({})
    expect(problem).toMatch(/^(?:CONFIG SET failed|Unknown option)/)
  })

  it('may be set to their current value', () => {
    expect(set('timeout', '0', 'save', '', 'appendonly', 'yes')).toEqual({ set: {}, changed: {} })
  })

  it('let a client lower maxmemory below the plan, and reset it', () => {
    const less = { ...row, ...set('maxmemory', '100').set }
    expect(configGet(less, facts, ['maxmemory']).get('maxmemory')).toBe('100')
    const again = { ...row, ...configSet(less, facts, ['maxmemory', '0']).set }
    expect(configGet(again, facts, ['maxmemory']).get('maxmemory')).toBe('1000')
  })

  it('apply only while the plan and the eviction allow it', () => {
    const stored = {
      'maxmemory-policy': 'allkeys-lfu',
      'busy-reply-threshold': '200',
      'slowlog-max-len': '5',
      odd: '1',
    }
    expect(effectiveSettings(stored, { ...facts, eviction: true })).toEqual({
      'maxmemory-policy': 'allkeys-lfu',
      'busy-reply-threshold': '200',
      'slowlog-max-len': '5',
    })
    expect(effectiveSettings(stored, { ...facts, scriptTimeoutMs: 100 })).toEqual({ 'slowlog-max-len': '5' })
  })
})
