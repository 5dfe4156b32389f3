/**
 * The life of a database: its states, and the arrows between them. Each arrow is one function here with one
 * transaction behind it that checks the state it starts from, so that two callers cannot both take it.
 *
 *                begin                     serve                     beginDeletion                finishDeletion
 *   (nothing) ──────────▶ active/creating ───────▶ active/(empty) ───────────────▶ active/deleting ──────────▶ (nothing)
 *                              │ undo
 *                              └──────▶ (nothing)            begin, finish, abandon of `changes/changer.ts`:
 *                                                            active/(empty) ◀──▶ active/changing_plan, updating_regions
 *                                                            begin and finish of `backups/`:
 *                                                            active/(empty) ◀──▶ active/backing_up, restoring
 *
 *   state/modifying_state   what is true                                          who takes the arrows out of it
 *   active/creating         a row; perhaps processes, files, an open port.        the creation that made it, or the
 *                           No caller has been told of it                         next start, which only undoes
 *   active/(empty)          serves, awake or asleep; a caller has been told           the owner
 *   active/changing_plan,   serves as the row says; its engines are on their way  the change that began it, or the
 *   active/updating_regions to another shape or back                              next start, which only gives it up
 *   active/backing_up       serves; a snapshot of it is taken and checked         the backup, or the next start, which
 *                                                                                 fails it
 *   active/restoring        serves its old data, then comes up with other data;   the restore or import; the next start
 *                           its row in `restores` says which                      undoes or carries through
 *   active/deleting         a row; no longer served; perhaps processes, files     the deletion, a repeated one, or
 *                                                                                 the next start, which only ends it
 *
 * `suspend` leads from active or passive to suspended, `resume` back to active, both with an empty `modifying_state`:
 * `usage/` takes them, as the budget says.
 *
 * `suspended` may stand in place of `active`; the arrows of `modifying_state` are the same for both. Whether a database
 * sleeps (`passive`) is not written down: it is true of the process that asks, see `sleep/sleeper.ts`.
 * While `modifying_state` is not empty, every other change is refused with `database_busy`.
 *
 * Rows come first and go last: whatever process or file exists belongs to a row, so that after a crash the rows alone
 * tell what is to be undone, ended or brought back.
 */

import type { AuditEvent } from '../accounts/index.js'
import type * as accounts from '../accounts/transactions/accounts.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import * as databases from './transactions/databases.js'
import * as databasesChanges from './transactions/databases-changes.js'

/** A database as it is stored. */
export type DatabaseRow = databases.DatabaseRow

type AuditRow = accounts.NewAuditRow

/** What a database is to become, and how the audit log records the change. */
export interface DesiredChange {
  /** Columns and their new values. */
  readonly set: Partial<databasesChanges.Configuration>
  /** The audit entry; its entity is the database. */
  readonly action: AuditEvent['action']
  readonly details: AuditEvent['details']
}

/** (nothing) → active/creating, or the reason why not. */
export function beginCreation(store: Store, args: databases.CreateArgs): Promise<databases.CreateOutcome> {
  return store.run(databases.create, args)
}

/** active/creating → active/(empty). */
export async function finishCreation(store: Store, databaseId: string, audit: AuditRow): Promise<DatabaseRow> {
  const row = await store.run(databases.finishCreate, { databaseId, audit })
  if (!row) throw new Error(`database ${databaseId} is not being created`)
  return row
}

/** active/creating → (nothing). May be repeated. */
export function undoCreation(store: Store, databaseId: string): Promise<void> {
  return store.run(databases.undoCreate, { databaseId })
}

/**
 * active/(empty) → active/deleting; from active/deleting it stays there, so that a deletion cut short can be repeated.
 */
export async function beginDeletion(
  store: Store,
  args: { accountId: string; databaseId: string; audit: AuditRow },
): Promise<void> {
  const outcome = await store.run(databases.beginDelete, args)
  if (outcome.kind === 'not_found') throw new HomeportError('database_not_found', { databaseId: args.databaseId })
  if (outcome.kind === 'busy') throw new HomeportError('database_busy', { modifyingState: outcome.modifyingState })
}

/** active/deleting → (nothing). May be repeated. */
export function finishDeletion(store: Store, databaseId: string): Promise<void> {
  return store.run(databases.finishDelete, { databaseId })
}

/**
 * active/changing_plan or active/updating_regions → active/(empty), as the row says, for a change that was cut short.
 */
export async function abandonChange(store: Store, row: DatabaseRow): Promise<void> {
  const { database_id: databaseId, modifying_state: modifyingState } = row
  if (modifyingState !== 'changing_plan' && modifyingState !== 'updating_regions') return
  await store.run(databasesChanges.abandon, { databaseId, modifyingState })
}

/** active or passive → suspended. Answers the new row; undefined when the database is not in a state for it. */
export function suspend(store: Store, args: databasesChanges.SuspensionArgs): Promise<DatabaseRow | undefined> {
  return store.run(databasesChanges.suspend, args)
}

/** suspended → active. Answers as `suspend` does. */
export function resume(store: Store, args: databasesChanges.SuspensionArgs): Promise<DatabaseRow | undefined> {
  return store.run(databasesChanges.resume, args)
}

/** Rows read in one transaction: reading all of them at once would keep other transactions waiting. */
export const PAGE_ROWS = 250

/** Reads the rows of all databases of all accounts, ordered by id. */
export async function everyRow(store: Pick<Store, 'run'>): Promise<readonly DatabaseRow[]> {
  const rows: DatabaseRow[] = []
  let after: string | undefined = ''
  do {
    const page: DatabaseRow[] = await store.run(databases.load, { after, limit: PAGE_ROWS })
    rows.push(...page)
    after = page.length < PAGE_ROWS ? undefined : page.at(-1)?.database_id
  } while (after !== undefined)
  return rows
}

/** What the next start has to do with a database that it finds. */
export type Recovery = 'serve' | 'undo-creation' | 'finish-deletion'

/** Decides by the state alone what a restart does with a database. */
export function recoveryOf(row: DatabaseRow): Recovery {
  if (row.modifying_state === 'creating') return 'undo-creation'
  return row.modifying_state === 'deleting' ? 'finish-deletion' : 'serve'
}
