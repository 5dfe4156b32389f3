/**
 * The states of a database and the transitions between them. Each transition is one function here and one transaction,
 * which checks the state that it starts from: two callers cannot both take it.
 *
 *           beginCreation              finishCreation             beginDeletion             finishDeletion
 *   (none) ───────────────▶ active/creating ─────▶ active/(empty) ──────────────▶ active/deleting ──────────────▶ (none)
 *                               │ undoCreation
 *                               └──────▶ (none)       begin, finish, abandon of `changes/changer.ts`:
 *                                                     active/(empty) ◀──▶ active/changing_plan, updating_regions
 *                                                     begin and finish of `backups/`:
 *                                                     active/(empty) ◀──▶ active/backing_up, restoring
 *
 *   state/modifying_state   what holds                                            who leaves the state
 *   active/creating         a row; perhaps processes, files, an open port.        the creation; after a crash the next
 *                           No caller knows the database yet                      start rolls it back
 *   active/(empty)          serves, awake or asleep; its caller knows it          the owner
 *   active/changing_plan,   serves as the row says; its engines take the new      the change; after a crash the next
 *   active/updating_regions configuration, or the old one again                   start abandons it
 *   active/backing_up       serves; a snapshot is being taken and checked         the backup; after a crash the next start
 *                                                                                 completes it, or marks it failed
 *   active/restoring        serves its old data, then starts with the new data;   the restore or import; after a crash
 *                           its row in `restores` names the phase                 the next start undoes or completes it
 *   active/deleting         a row; not served; perhaps processes, files           the deletion or a repeated one; after
 *                                                                                 a crash the next start completes it
 *
 * `suspend` moves an active database to `suspended`, `resume` moves it back. Both need an empty `modifying_state`. `usage/`
 * calls them when a budget is spent or suffices again. A suspended database takes the same transitions of
 * `modifying_state` as an active one.
 *
 * The owner's own suspension is the column `suspended_by_owner`, and that of an account is not stored with its databases:
 * see `suspended.ts`. Neither is a state of this table, so that no reason ends another.
 *
 * Whether a database sleeps (`passive`) is not stored: it depends on this process, see `sleep/sleeper.ts`.
 * While `modifying_state` is not empty, every other change is refused with `database_busy`.
 *
 * Invariant: a row is committed before any process or file of its database exists, and deleted after the last of them.
 * So after a crash the rows alone say what has to be rolled back, completed or served.
 */

import type { AuditEvent } from '../accounts/index.js'
import type * as accounts from '../accounts/transactions/accounts.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import type { DatabaseRow } from './transactions/database-row.js'
import * as databases from './transactions/databases.js'
import * as databasesChanges from './transactions/databases-changes.js'
import type { DatabaseOfAccount } from './transactions/home-check.js'

export type { DatabaseRow }

type AuditRow = accounts.NewAuditRow

/** What a database is to become, and how the audit log records the change. */
export interface DesiredChange {
  /** Columns and their new values. */
  readonly set: Partial<databasesChanges.Configuration>
  /** The audit entry; its entity is the database. */
  readonly action: AuditEvent['action']
  readonly details: AuditEvent['details']
}

/** (none) → active/creating, or the reason why not. */
export function beginCreation(store: Store, args: databases.CreateArgs): Promise<databases.CreateOutcome> {
  return store.run(databases.create, args)
}

/** active/creating → active/(empty). */
export async function finishCreation(
  store: Store,
  databaseId: string,
  args: Omit<databases.FinishedCreation, 'databaseId'>,
): Promise<DatabaseRow> {
  const row = await store.run(databases.finishCreate, { ...args, databaseId })
  if (!row) throw new Error(`database ${databaseId} is not being created`)
  return row
}

/** active/creating → (none). May be repeated. */
export function undoCreation(store: Store, databaseId: string): Promise<void> {
  return store.run(databases.undoCreate, { databaseId })
}

/**
 * active/(empty) → active/deleting. A database that is `deleting` stays so: an interrupted deletion can be repeated.
 */
export async function beginDeletion(store: Store, args: DatabaseOfAccount & { audit: AuditRow }): Promise<void> {
  const outcome = await store.run(databases.beginDelete, args)
  if (outcome.kind === 'not_found') throw new HomeportError('database_not_found', { databaseId: args.databaseId })
  if (outcome.kind === 'busy') throw new HomeportError('database_busy', { modifyingState: outcome.modifyingState })
}

/** active/deleting → (none). May be repeated. */
export function finishDeletion(store: Store, databaseId: string): Promise<void> {
  return store.run(databases.finishDelete, { databaseId })
}

/**
 * active/changing_plan or active/updating_regions → active/(empty) with the old configuration, after an interrupted
 * change.
 */
export async function abandonChange(store: Store, row: DatabaseRow): Promise<void> {
  const { database_id: databaseId, modifying_state: modifyingState } = row
  if (modifyingState !== 'changing_plan' && modifyingState !== 'updating_regions') return
  await store.run(databasesChanges.abandon, { databaseId, modifyingState })
}

/** active → suspended. Resolves to the new row; undefined when the database is suspended already, busy or gone. */
export function suspend(store: Store, args: databasesChanges.SuspensionArgs): Promise<DatabaseRow | undefined> {
  return store.run(databasesChanges.suspend, args)
}

/** suspended → active. Resolves to the new row; undefined when the database is not suspended, busy or gone. */
export function resume(store: Store, args: databasesChanges.SuspensionArgs): Promise<DatabaseRow | undefined> {
  return store.run(databasesChanges.resume, args)
}

/** Rows read in one transaction: reading all of them at once would keep other transactions waiting. */
export const PAGE_ROWS = 250

/**
 * Reads the rows of all databases of all accounts, ordered by id.
 * @param before rows that this server has read before, if no other node changes rows. If none of them was being changed,
 * the first steps of a start have changed none of them, and they are returned without another read.
 */
export async function everyRow(
  store: Pick<Store, 'run'>,
  before: readonly DatabaseRow[] = [],
): Promise<readonly DatabaseRow[]> {
  if (before.length > 0 && before.every((row) => row.modifying_state === '')) return before
  const rows: DatabaseRow[] = []
  let after: string | undefined = ''
  do {
    const page: DatabaseRow[] = await store.run(databases.load, { after, limit: PAGE_ROWS })
    rows.push(...page)
    after = page.length < PAGE_ROWS ? undefined : page.at(-1)?.database_id
  } while (after !== undefined)
  return rows
}

/** What a start does with a database that it finds in the store. */
export type Recovery = 'serve' | 'undo-creation' | 'finish-deletion'

/** Decides from the stored state what a start does with a database. */
export function recoveryOf(row: DatabaseRow): Recovery {
  if (row.modifying_state === 'creating') return 'undo-creation'
  return row.modifying_state === 'deleting' ? 'finish-deletion' : 'serve'
}
