import { describe, expect, it } from 'vitest'
import { isSampled } from '../../../test/support/sample.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import * as bulkRead from '../../bulk/transactions/bulk-read.js'
import * as bulkSelect from '../../bulk/transactions/bulk-select.js'
import * as consoleCounts from '../../bulk/transactions/console-counts.js'
import * as runsDead from '../../workflow/transactions/runs-dead.js'
import { describeOnEveryStore, STORE_KINDS, type StoreKind } from '../testing/index.js'
import { type Column, createOldStore, raw } from '../testing/inspect.js'
import { MIGRATIONS } from './index.js'
import type { Migration } from './migration.js'

/** Opening a store mostly waits for the disk. */
const STORES_AT_A_TIME = 4

/** Samples the ages, and includes the newest ones: every store gets the missing migrations one by one, whatever its age. */
const isTried = (age: number): boolean => isSampled(age, 32) || age > MIGRATIONS.length - 3

const columnsOn = new Map<StoreKind, Column[]>()

const foreign = (breaking: boolean): Migration => ({
  number: 999,
  name: 'from the future',
  breaking,
  statements: () => ['CREATE TABLE from_the_future (id INTEGER)'],
})

describe('the list of migrations', () => {
  it('has ascending numbers, and unique numbers and names', () => {
    const numbers = MIGRATIONS.map(({ number }) => number)
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    expect(new Set(MIGRATIONS.map(({ name }) => name)).size).toBe(MIGRATIONS.length)
  })
})

describeOnEveryStore('the schema', (openStore, on) => {
  it('is the same for a new store and for one migrated from older versions', async () => {
    const fresh = await on.newPlace()
    await (await openStore(fresh)).close()
    const expected = await raw(fresh).schema()
    expect(expected.length).toBeGreaterThan(10)
    const ages = [...MIGRATIONS.keys()].filter(isTried).values()
    const travellers = Array.from({ length: STORES_AT_A_TIME }, async () => {
      for (const age of ages) {
        const place = await on.newPlace()
        await createOldStore(place, MIGRATIONS.slice(0, age))
        await (await openStore(place)).close()
        expect(await raw(place).schema()).toEqual(expected)
      }
    })
    await Promise.all(travellers)
    columnsOn.set(on.kind, await raw(fresh).columns())
  }, 120_000)

  it('keeps data when the store is reopened', async () => {
    const place = await on.newPlace()
    const entry = { log_id: 'log_1', account_id: 'acc_1', actor: 'a', source: 's', action: 'x', entity: 'e' }
    const first = await openStore(place)
    await first.run(accounts.audit, { ...entry, details: '{}', ip: '', at: 1 })
    await first.close()
    const again = await openStore(place)
    expect(await again.run(accounts.auditLog, { accountId: 'acc_1', limit: 9 })).toMatchObject([{ log_id: 'log_1' }])
  })

  it('keeps the numbers of bulk actions and the times of pauses', async () => {
    const place = await on.newPlace()
    await createOldStore(
      place,
      MIGRATIONS.filter(({ number }) => number < 24),
    )
    const counts = 'matched, succeeded, already_finished, already_cancelled, not_found, failed, skipped'
    const columns = `action_id, account_id, kind, state, selector, actor, source, ip, ${counts}, created_at`
    const action = (id: string, state: string) => `INSERT INTO bulk_actions (${columns})
      VALUES ('${id}', 'acc_1', 'resumeRuns', '${state}', '{}', 'a', 's', '', 1, 0, 0, 0, 0, 0, 0, 5)`
    const pausing = (
      at: number,
    ) => `INSERT INTO audit_log (log_id, account_id, actor, source, action, entity, details, ip, at)
      VALUES ('log_${at}', 'acc_1', 'a', 's', 'Pause Bulk Action', 'bulk_2', '{}', '', ${at})`
    const gone = "DELETE FROM bulk_actions WHERE action_id = 'bulk_0'"
    const made = [action('bulk_0', 'running'), gone, action('bulk_1', 'running'), action('bulk_2', 'paused')]
    await raw(place).execute([...made, action('bulk_3', 'paused'), pausing(7), pausing(9)].join(';\n'))
    const store = await openStore(place)
    const shown = async (actionId: string) => store.run(bulkRead.action, { accountId: 'acc_1', actionId })
    expect(await shown('bulk_1')).toMatchObject({ seq: 2, kind: 'resumeRuns', state: 'running', paused_at: null })
    expect(await shown('bulk_2')).toMatchObject({ seq: 3, kind: 'resumeRuns', state: 'paused', paused_at: 9 })
    expect(await shown('bulk_3')).toMatchObject({ seq: 4, paused_at: 5 })
  })

  it('finds the unfinished and the dead runs of an older store', async () => {
    const place = await on.newPlace()
    await createOldStore(
      place,
      MIGRATIONS.filter(({ number }) => number < 44),
    )
    const columns = 'run_id, account_id, url, host, path, contact, created_at, labels, caller_ip'
    const run = (id: string, state: string, finishedAt: string, dlqId: string) =>
      `INSERT INTO runs (${columns}, state, finished_at, dlq_id)
        VALUES ('${id}', 'acc_1', 'http://x.test/', 'x.test', '/', 'known', 1, '', '', '${state}', ${finishedAt}, ${dlqId})`
    const ended = [run('late', 'RUN_FAILED', '9', "'9-1'"), run('early', 'RUN_FAILED', '8', "'8-2'")]
    const others = [run('deleted', 'RUN_FAILED', '7', 'NULL'), run('cancelled', 'RUN_CANCELED', '5', 'NULL')]
    await raw(place).execute([...ended, run('open', 'RUN_STARTED', 'NULL', 'NULL'), ...others].join(';\n'))
    const store = await openStore(place)
    const counts = await store.run(consoleCounts.ofAccount, { accountId: 'acc_1', most: 9 })
    expect(counts).toMatchObject({ activeRuns: 1, deadRuns: 2 })
    const all = { accountId: 'acc_1', filter: {}, after: 0, bound: 99, scan: 9, most: 9 }
    expect((await store.run(bulkSelect.selectPage, all)).seqs).toEqual([3])
    const letters = { accountId: 'acc_1', filter: { from: 8 }, order: 'earliestFirst', limit: 9 } as const
    expect((await store.run(runsDead.deadSeqs, letters)).seqs).toEqual([2, 1])
  })

  it('of a newer Homeport is refused if it is breaking, and nothing is changed', async () => {
    const place = await on.newPlace()
    await createOldStore(place, [...MIGRATIONS.slice(0, 1), foreign(true)])
    const before = await raw(place).schema()
    await expect(openStore(place)).rejects.toMatchObject({
      code: 'store_newer',
      message: expect.stringContaining('schema step 999, from the future'),
    })
    expect(await raw(place).schema()).toEqual(before)
  })

  it('of a newer Homeport is accepted if its migrations are not breaking', async () => {
    const place = await on.newPlace()
    await createOldStore(place, [...MIGRATIONS, foreign(false)])
    const store = await openStore(place)
    expect(await store.run(accounts.load, {})).toMatchObject({ accounts: [], keys: [] })
  })

  it('is created once when two servers start at the same time', async () => {
    const place = await on.newPlace()
    const starts = await Promise.allSettled([openStore(place), openStore(place)])
    const refused = starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : []))
    // The lock on the data directory protects the file of SQLite; the store itself locks PostgreSQL.
    if (on.kind === 'sqlite') expect(refused).toEqual([])
    else expect(refused).toMatchObject([{ code: 'store_in_use' }])
    for (const start of starts) {
      if (start.status === 'fulfilled')
        expect(await start.value.run(accounts.load, {})).toMatchObject({ accounts: [], keys: [] })
    }
  })
})

describe('the schemas of both databases', () => {
  it('have the same tables, columns and nullable columns', () => {
    const [first, ...others] = STORE_KINDS.map((kind) => columnsOn.get(kind)?.filter(isCompared))
    expect(first?.length).toBeGreaterThan(20)
    for (const other of others) expect(nullable(other)).toEqual(nullable(first))
  })
})

/** `open_runs` is a view on SQLite. */
const isCompared = ({ table, name }: Column): boolean => name !== 'seq' && table !== 'open_runs'

function nullable(columns: readonly Column[] = []): string[] {
  return columns.map(({ table, name, isNullable }) => `${table}.${name} ${isNullable ? 'may be NULL' : 'is set'}`)
}
