import type { Selectable } from 'kysely'
import { recordAudit } from '../../accounts/transactions/accounts.js'
import type { AuditAction } from '../../contract/accounts/audit.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { BulkSelectorsTable } from '../../store/schema/bulk.js'
import { all, change, first, only, type Transaction } from '../../store/statement.js'
import type { ControlArgs } from './bulk-control.js'

/** Saved selectors of accounts. Each change writes its audit entry. */

/** A saved selector. */
export type SavedRow = Selectable<BulkSelectorsTable>

interface Named {
  readonly accountId: string
  readonly name: string
}

/** Who changes a saved selector, and when. */
type By = Pick<ControlArgs, 'by' | 'at'>

const savedOf = query<{ accountId: string }, SavedRow>(({ db, p }) =>
  db.selectFrom('bulk_selectors').selectAll().where('account_id', '=', p.accountId).orderBy('name'),
)
const savedNamed = query<Named, SavedRow>(({ db, p }) =>
  db.selectFrom('bulk_selectors').selectAll().where('account_id', '=', p.accountId).where('name', '=', p.name),
)
const countOf = query<{ accountId: string }, { count: number }>(({ db, p }) =>
  db
    .selectFrom('bulk_selectors')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('account_id', '=', p.accountId),
)
const put = query<SavedRow>(({ db, p }) => {
  const { kind, selector, saved_by, saved_at } = p
  return db
    .insertInto('bulk_selectors')
    .values({ account_id: p.account_id, name: p.name, kind, selector, saved_by, saved_at })
    .onConflict((conflict) =>
      conflict.columns(['account_id', 'name']).doUpdateSet({ kind, selector, saved_by, saved_at }),
    )
})
const dropNamed = query<Named>(({ db, p }) =>
  db.deleteFrom('bulk_selectors').where('account_id', '=', p.accountId).where('name', '=', p.name),
)

/** All saved selectors of an account, by name. */
export const list = read(
  'bulkSaved.list',
  (args: { readonly accountId: string }): Transaction<SavedRow[]> => all(savedOf, args),
)

/** A saved selector by name. */
export const find = read('bulkSaved.find', (args: Named): Transaction<SavedRow | undefined> => first(savedNamed, args))

/** A selector to save. */
export interface SaveArgs extends By {
  readonly row: SavedRow
  /** Most selectors of an account. */
  readonly most: number
}

function* record({ by, at }: By, action: AuditAction, row: SavedRow): Transaction<void> {
  const { kind, selector } = row
  yield* recordAudit({
    log_id: by.logId,
    account_id: row.account_id,
    actor: by.actor,
    source: by.source,
    action,
    entity: row.name,
    details: JSON.stringify({ kind, selector: JSON.parse(selector) }),
    ip: by.ip,
    at,
  })
}

/** Saves a selector, or replaces that of the same name. @returns false if the account has too many. */
export const save = write('bulkSaved.save', function* (args: SaveArgs): Transaction<boolean> {
  const { row, most } = args
  const named = { accountId: row.account_id, name: row.name }
  const isNew = (yield* first(savedNamed, named)) === undefined
  if (isNew && (yield* only(countOf, named)).count >= most) return false
  yield* change(put, row)
  yield* record(args, 'Save Bulk Selector', row)
  return true
})

/** Deletes a saved selector. @returns the deleted row. */
export const drop = write('bulkSaved.drop', function* (args: Named & By): Transaction<SavedRow | undefined> {
  const row = yield* first(savedNamed, args)
  if (!row) return undefined
  yield* change(dropNamed, args)
  yield* record(args, 'Delete Bulk Selector', row)
  return row
})
