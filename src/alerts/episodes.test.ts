import { expect, it } from 'vitest'
import type { AlertKind } from '../contract/alerts/kinds.js'
import type { Condition } from './conditions.js'
import { changesOf, type LookInput } from './episodes.js'
import type { ConditionRow } from './transactions/alerts-conditions.js'

const NOW = Date.parse('2026-03-10T00:00:00Z')
const CALM = 15 * 60_000

const state = (kind: AlertKind, subject: string): Condition => ({
  accountId: 'a',
  kind,
  subject,
  level: 1,
  severity: 'error',
  title: 'T.',
  advice: 'A.',
})
const changes = (current: readonly Condition[], known: readonly ConditionRow[], some: Partial<LookInput> = {}) =>
  changesOf(current, { now: NOW, known, isUnjudged: () => false, nameOf: () => 'shop', ...some })
const ends = ({ resolved }: ReturnType<typeof changesOf>) =>
  resolved.map(({ episodeId, found }) => [found.subject, episodeId, found.title])

it('the watch gives a state one episode from its beginning to its end, and another one when it comes back', () => {
  const begun = changes([state('disk_full', 'd')], [])
  const [row] = begun.put
  expect(begun.raised).toMatchObject([{ episodeId: row?.episode_id, found: { subject: 'd' } }])
  const worse = changes([{ ...state('disk_full', 'd'), level: 2 }], begun.put)
  expect(worse.raised).toMatchObject([{ episodeId: row?.episode_id }])
  const gone = changes([], begun.put)
  expect([gone.put, gone.forget, gone.resolved]).toEqual([[{ ...row, gone_at: NOW }], [], []])
  expect(changes([state('disk_full', 'd')], gone.put, { now: NOW + 2 }).raised).toEqual([])
  const over = changes([], gone.put, { now: NOW + CALM })
  expect(ends(over)).toEqual([['d', row?.episode_id, 'The disk with the data directory has space again.']])
  expect(over.resolved[0]?.found).toMatchObject({ firstAt: NOW, lastAt: NOW })
  expect(changes([state('disk_full', 'd')], []).put[0]?.episode_id).not.toBe(row?.episode_id)
})

it('the watch ends a state that does not flap at once, and names the database, or says that it is gone', () => {
  const { put } = changes([state('budget', 'db'), state('backup_old', 'db')], [])
  expect(ends(changes([], put)).map(([, , title]) => title)).toEqual([
    'The database "shop" is below the alert threshold of its budget again.',
    'The database "shop" has a recent backup again, or no daily backups any more.',
  ])
  expect(ends(changes([], put, { nameOf: () => undefined }))[0]?.[2]).toBe('The database db is gone.')
})

it('the watch ends no state that it cannot judge', () => {
  const { put } = changes([state('disk_full', 'd')], [])
  const blind = changes([], put, { isUnjudged: () => true })
  expect([blind.put, blind.forget]).toEqual([[], []])
})

it('counts states together that begin at the same time, and ends them with the last one', () => {
  const all = Array.from({ length: 23 }, (_, place) => state('schedule_missed', `s${place}`))
  const { put, raised } = changes(all, [])
  expect([put.length, raised.length]).toEqual([23, 21])
  expect(raised.at(-1)?.found).toMatchObject({ subject: 'others', count: 3 })
  expect(ends(changes(all.slice(22), put))).toHaveLength(20)
  const last = changes([], put.slice(22))
  expect(ends(last)).toEqual([
    ['others', raised.at(-1)?.episodeId, 'The other alerts of the rule schedule_missed have ended.'],
  ])
})

it('the watch reminds and ends as usual after the clock was set back', () => {
  const ahead = NOW + 365 * 24 * 60 * 60_000
  const { put } = changes([state('disk_full', 'd')], [], { now: ahead })
  const lasting = changes([state('disk_full', 'd')], put)
  expect([lasting.raised, lasting.put]).toEqual([[], [{ ...put[0], alerted_at: NOW }]])
  const gone = changes([], changes([], put, { now: ahead }).put)
  expect(gone.put).toMatchObject([{ gone_at: NOW }])
  expect(ends(changes([], gone.put, { now: NOW + CALM }))).toHaveLength(1)
})
