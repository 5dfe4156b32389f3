import { expect, it } from 'vitest'
import { conditionsOf, type Observed } from './conditions.js'

const NOW = Date.parse('2026-03-10T00:00:00Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR

const calm: Observed = {
  now: NOW,
  firstAccountId: 'first',
  rules: [],
  databases: [],
  schedules: [],
  backups: [],
  failing: [],
  problems: [],
  disk: { freeBytes: 50, totalBytes: 100 },
  certificateExpiresAt: NOW + 90 * DAY,
}
const found = (some: Partial<Observed>) =>
  conditionsOf({ ...calm, ...some }).map(({ accountId, kind, subject, level }) => [accountId, kind, subject, level])
const rule = (kind: string, threshold: number) => ({ account_id: 'a', kind, enabled: 1 as const, threshold })

it('the watch finds nothing while all is well', () => {
  expect(found({})).toEqual([])
})

it('the watch judges the disk and the certificate for the first account', () => {
  expect(found({ disk: { freeBytes: 10, totalBytes: 100 } })).toEqual([['first', 'disk_full', 'data directory', 1]])
  expect(found({ disk: { freeBytes: 3, totalBytes: 100 } })).toEqual([['first', 'disk_full', 'data directory', 2]])
  expect(found({ disk: undefined, certificateExpiresAt: undefined })).toEqual([])
  const at = (certificateExpiresAt: number) => found({ certificateExpiresAt })
  expect(at(NOW + 13 * DAY)).toEqual([['first', 'certificate_expiring', 'certificate', 1]])
  expect(at(NOW - 1)).toEqual([['first', 'certificate_expiring', 'certificate', 2]])
})

it('the watch judges budgets by the threshold of the account, and never below it', () => {
  const levels = (spent: number, threshold?: number) =>
    found({
      databases: [{ accountId: 'a', databaseId: 'd', name: 'shop', budget: 10, spent }],
      rules: threshold === undefined ? [] : [rule('budget', threshold)],
    }).map((one) => one[3])
  expect([6.9, 7, 9, 12].map((spent) => levels(spent))).toEqual([[], [70], [90], [100]])
  expect([9.2, 9.5, 10].map((spent) => levels(spent, 95))).toEqual([[], [95], [100]])
  expect(levels(5, 50)).toEqual([50])
})

it('the watch judges daily backups by the newest one, or by the age of the database', () => {
  const backup = { account_id: 'a', database_id: 'd', name: 'shop', created_at: NOW - 9 * DAY }
  const old = [['a', 'backup_old', 'd', 1]]
  expect(found({ backups: [{ ...backup, newest: NOW - 47 * HOUR }] })).toEqual([])
  expect(found({ backups: [{ ...backup, newest: NOW - 49 * HOUR }] })).toEqual(old)
  expect(found({ backups: [{ ...backup, newest: null }] })).toEqual(old)
  expect(found({ backups: [{ ...backup, newest: null, created_at: NOW - 47 * HOUR }] })).toEqual([])
  expect(found({ backups: [{ ...backup, newest: NOW - 30 * HOUR }], rules: [rule('backup_old', 25)] })).toEqual(old)
})

it('the watch judges schedules that are late or whose last fire published nothing', () => {
  const schedule = { account_id: 'a', schedule_id: 's', next_at: NOW + 1, error: null }
  const missed = [['a', 'schedule_missed', 's', 1]]
  expect(found({ schedules: [{ ...schedule, next_at: NOW - 299_000 }] })).toEqual([])
  expect(found({ schedules: [{ ...schedule, next_at: NOW - 301_000 }] })).toEqual(missed)
  expect(found({ schedules: [{ ...schedule, error: 'The URL group is empty.' }] })).toEqual(missed)
})

it('the watch assigns problems to their rule and their account', () => {
  const problem = { subject: 's', severity: 'error', title: 'T.', advice: 'A.', sinceMs: NOW, count: 1 } as const
  expect(found({ problems: [{ ...problem, kind: 'store_damaged' }] })).toEqual([['first', 'store_corrupt', 's', 1]])
  const own = { ...problem, accountId: 'a' }
  expect(found({ problems: [{ ...own, kind: 'engine_hung' }] })).toEqual([['a', 'engine_restarting', 's', 1]])
  expect(found({ problems: [{ ...own, kind: 'data_missing' }] })).toEqual([['a', 'problem', 'data_missing s', 1]])
})
