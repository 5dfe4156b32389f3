import { expect, it } from 'vitest'
import type { Overview } from '../../../../src/contract/console/console.js'
import { concernsOf } from './attention.js'

const NOW = 1_800_000_000_000
const DAY_S = 86_400

const fine: Overview = {
  version: '1.0.0',
  started_at: 1,
  engine: { kind: 'valkey', version: '8.0.0', problems: [] },
  store: { kind: 'sqlite', durability: 'full' },
  tls: { by_default: false, certificate_expires_at: NOW / 1000 + 300 * DAY_S },
  problems: [],
  disk: { free_bytes: 50, total_bytes: 100 },
  memory: { resident_bytes: 1 },
  databases: { active: 1, passive: 0, suspended: 0, modifying: 0 },
  messages: { waiting: 3, dead: 0 },
  runs: { unfinished: 2, dead: 0 },
  bulk_actions: { unfinished: 0 },
}

const titles = (some: Partial<Overview>) =>
  concernsOf({ ...fine, ...some }, NOW).map(({ tone, title }) => `${tone}: ${title}`)

it('nothing needs attention while all is well', () => {
  expect(titles({})).toEqual([])
})

it.each<[Partial<Overview>, string]>([
  [{ disk: { free_bytes: 5, total_bytes: 100 } }, 'warn: The disk has 5 B left (5 %)'],
  [{ disk: { free_bytes: 1, total_bytes: 100 } }, 'bad: The disk has 1 B left (1 %)'],
  [{ databases: { ...fine.databases, suspended: 2 } }, 'bad: 2 databases are suspended'],
  [{ messages: { waiting: 0, dead: 1 } }, 'warn: 1 message could not be delivered'],
  [{ messages: { waiting: 0, dead: 10_000 } }, 'warn: 10,000+ messages could not be delivered'],
  [{ runs: { unfinished: 0, dead: 3 } }, 'warn: 3 workflow runs have failed'],
  [
    { tls: { ...fine.tls, certificate_expires_at: NOW / 1000 + 2 * DAY_S } },
    'warn: The certificate of the Redis ports expires in 2d',
  ],
  [
    { tls: { ...fine.tls, certificate_expires_at: NOW / 1000 - 1 } },
    'bad: The certificate of the Redis ports has expired',
  ],
])('%j', (some, title) => {
  expect(titles(some)).toEqual([title])
})

it('problems of the server are shown with advice', () => {
  const found = { kind: 'store_damaged', subject: 'messages', since: 1, count: 3 }
  const problems = [{ ...found, severity: 'error' as const, title: 'A table is damaged.', advice: 'Restore a backup.' }]
  expect(concernsOf({ ...fine, problems }, NOW)).toEqual([
    { key: 'store_damaged messages', tone: 'bad', title: 'A table is damaged.', advice: 'Restore a backup.' },
  ])
})

it('the worst problem is first', () => {
  const engine = { ...fine.engine, problems: ['It has a hole. Install a newer one.'] }
  expect(titles({ engine, messages: { waiting: 0, dead: 1 } }).map((line) => line.split(':')[0])).toEqual([
    'bad',
    'warn',
  ])
})
