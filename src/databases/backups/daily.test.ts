import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { auditRow, newAccountRows } from '../../accounts/testing/rows.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import type { Store } from '../../store/types.js'
import { silentLogger } from '../../telemetry/index.js'
import { creationOf } from '../testing/rows.js'
import * as backups from '../transactions/backups.js'
import * as daily from '../transactions/backups-daily.js'
import * as databases from '../transactions/databases.js'
import * as homes from '../transactions/homes.js'
import { DailyBackups } from './daily.js'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const NOW = 1_800_000_000_000

describeOnSampledStore('daily backups', (openStore) => {
  let shared: Store | undefined
  let store: Store
  let accountId: string
  let home: string

  beforeEach(async () => {
    shared ??= await openStore()
    store = shared
    await store.run(accounts.identify, { freshId: 'store-1', at: 1 })
    accountId = await newAccount()
    home = `of ${accountId}`
  })

  async function newAccount(): Promise<string> {
    const id = randomUUID()
    await store.run(accounts.create, newAccountRows(id, 1))
    return id
  }

  /** A database whose daily backup is due at a time. */
  async function due(at: number): Promise<string> {
    const databaseId = randomUUID()
    const audit = () => auditRow(accountId, NOW, databaseId)
    await store.run(databases.create, creationOf(databaseId, accountId, NOW))
    await store.run(databases.finishCreate, { databaseId, audit: audit() })
    await store.run(homes.adopt, { databaseId, home })
    await store.run(daily.set, { accountId, databaseId, firstAt: at, audit: audit() })
    return databaseId
  }

  const common = () =>
    ({ store, home, keep: 'stored', ages: { mayDelete: true }, files: { remove: async () => undefined } }) as const

  const completed = { kind: 'completed', sizeBytes: 10, keyCount: 2, dataBytes: 100, sha256: 'abc' } as const

  it('are repeated with growing pauses after a failure, which is stored and logged once a day', async () => {
    const clock = new ManualClock(NOW)
    const databaseId = await due(NOW)
    const tries: number[] = []
    let failing = 20
    const logged: unknown[] = []
    const schedule = new DailyBackups({
      ...common(),
      clock,
      logger: { ...silentLogger, error: (event: string) => void logged.push(event) },
      create: async (backup) => {
        tries.push((clock.now() - NOW) / MINUTE_MS)
        await store.run(backups.begin, { backup, home })
        const result = --failing < 0 ? completed : ({ kind: 'failed', failure: 'full' } as const)
        await store.run(backups.finish, { backupId: backup.backup_id, result, at: clock.now() })
        if (result.kind === 'failed') throw new Error('full')
      },
    })
    const states = async () =>
      (await store.run(backups.list, { accountId, databaseId }))?.map(({ state, created_at }) => [state, created_at])
    const pass = async (minutes: number) => {
      for (let left = minutes; left > 0; left -= 5) {
        await waitFor(() => clock.pendingTimers === 1, { what: 'the check to end', everyMs: 1 })
        clock.advance(5 * MINUTE_MS)
      }
      await waitFor(() => clock.pendingTimers === 1, { what: 'the check to end', everyMs: 1 })
    }
    schedule.start()
    await pass(24 * 60)
    expect(tries).toEqual([0, 5, 15, 35, 75, 155, 315, 635, 1275, 1440])
    expect(await states()).toEqual([
      ['failed', NOW + DAY_MS],
      ['failed', NOW],
    ])
    expect(logged).toEqual(['backup_daily_failed', 'backup_daily_failed'])
    failing = 0
    await pass(24 * 60)
    expect(tries.slice(10)).toEqual([1445, 2880])
    await schedule.stop()
  })

  it('let accounts take turns when many are due', async () => {
    const clock = new ManualClock(NOW)
    const made: string[] = []
    const names = new Map<string, string>()
    const dueAs = async (name: string, at: number) => void names.set(await due(at), name)
    for (const n of [1, 2, 3]) await dueAs(`many ${n}`, NOW - 9 + n)
    accountId = await newAccount()
    await dueAs('other 1', NOW)
    const schedule = new DailyBackups({
      ...common(),
      clock,
      logger: silentLogger,
      create: async ({ database_id }) => {
        made.push(names.get(database_id) ?? '')
        // Becomes due while the others wait.
        if (made.length === 2) await dueAs('other 2', NOW)
      },
    })
    schedule.start()
    await waitFor(() => clock.pendingTimers === 1, { what: 'the check to end', everyMs: 1 })
    expect(made).toEqual(['many 1', 'other 1', 'many 2', 'other 2', 'many 3'])
    await schedule.stop()
  })
})
