import { describe, expect, it } from 'vitest'
import * as accounts from '../../accounts/transactions/accounts.js'
import * as bulkRead from '../../bulk/transactions/bulk-read.js'
import { describeOnEveryStore, STORE_KINDS, type StoreKind } from '../testing/index.js'
import { type Column, leaveBehind, raw } from '../testing/inspect.js'
import { MIGRATIONS } from './index.js'
import type { Migration } from './migration.js'

/** Opening one is mostly waiting for the disk. */
const STORES_AT_A_TIME = 4

const columnsOn = new Map<StoreKind, Column[]>()

const foreign = (breaking: boolean): Migration => ({
  number: 999,
  name: 'from the future',
  breaking,
  statements: () => ['CREATE TABLE from_the_future (id INTEGER)'],
})

describe('the list of schema steps', () => {
  it('is numbered upwards, each number and name once', () => {
    const numbers = MIGRATIONS.map(({ number }) => number)
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
    expect(new Set(MIGRATIONS.map(({ name }) => name)).size).toBe(MIGRATIONS.length)
  })
})

describeOnEveryStore('the schema', (openStore, on) => {
  it('is the same for a new store and for one that went through every older version', async () => {
    const fresh = await on.newPlace()
    await (await openStore(fresh)).close()
    const expected = await raw(fresh).schema()
    expect(expected.length).toBeGreaterThan(10)
    const ages = MIGRATIONS.keys()
    const travellers = Array.from({ length: STORES_AT_A_TIME }, async () => {
      for (const age of ages) {
        const place = await on.newPlace()
        await leaveBehind(place, MIGRATIONS.slice(0, age))
        await (await openStore(place)).close()
        expect(await raw(place).schema()).toEqual(expected)
      }
    })
    await Promise.all(travellers)
    columnsOn.set(on.kind, await raw(fresh).columns())
    // Opens a store for every step that there has ever been.
  }, 120_000)

  it('keeps what was stored when the store is opened again', async () => {
    const place = await on.newPlace()
    const entry = { log_id: 'log_1', account_id: 'acc_1', actor: 'a', source: 's', action: 'x', entity: 'e' }
    const first = await openStore(place)
    await first.run(accounts.audit, { ...entry, details: '{}', ip: '', at: 1 })
    await first.close()
    const again = await openStore(place)
    expect(await again.run(accounts.auditLog, { accountId: 'acc_1', limit: 9 })).toMatchObject([{ log_id: 'log_1' }])
  })

  it('keeps bulk actions under their numbers, and since when they are paused', async () => {
    const place = await on.newPlace()
    await leaveBehind(
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

  it('of a newer Homeport is refused when this one would misread it, and nothing is touched', async () => {
    const place = await on.newPlace()
    await leaveBehind(place, [...MIGRATIONS.slice(0, 1), foreign(true)])
    const before = await raw(place).schema()
    await expect(openStore(place)).rejects.toMatchObject({
      code: 'store_newer',
      message: expect.stringContaining('999 (from the future)'),
    })
    expect(await raw(place).schema()).toEqual(before)
  })

  it('of a newer Homeport is worked with when its steps do not matter to this one', async () => {
    const place = await on.newPlace()
    await leaveBehind(place, [...MIGRATIONS, foreign(false)])
    const store = await openStore(place)
    expect(await store.run(accounts.load, {})).toMatchObject({ accounts: [], keys: [] })
  })

  it('is made once when two start at the same moment', async () => {
    const place = await on.newPlace()
    const starts = await Promise.allSettled([openStore(place), openStore(place)])
    const refused = starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : []))
    // One server has one file to itself by the lock on its data directory; PostgreSQL is locked by the store itself.
    if (on.kind === 'sqlite') expect(refused).toEqual([])
    else expect(refused).toMatchObject([{ code: 'store_in_use' }])
    for (const start of starts) {
      if (start.status === 'fulfilled')
        expect(await start.value.run(accounts.load, {})).toMatchObject({ accounts: [], keys: [] })
    }
  })
})

describe('the schemas of both databases', () => {
  it('have the same tables and columns, and let the same columns be NULL', () => {
    const [first, ...others] = STORE_KINDS.map((kind) => columnsOn.get(kind)?.filter(({ name }) => name !== 'seq'))
    expect(first?.length).toBeGreaterThan(20)
    for (const other of others) expect(nullable(other)).toEqual(nullable(first))
  })
})

function nullable(columns: readonly Column[] = []): string[] {
  return columns.map(({ table, name, isNullable }) => `${table}.${name} ${isNullable ? 'may be NULL' : 'is set'}`)
}
