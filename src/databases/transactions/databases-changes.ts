/**
 * Changes to a database that exists. Each is one transaction that locks the row and looks at `modifying_state` first,
 * so that of two changes at once one wins and the other learns what is going on.
 *
 * A change that the store alone can make is `configure`. One that takes a while is `begin`, then the work, then
 * `finish`, which writes the whole change at once; `abandon` in its place leaves the database as it was.
 */

import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { all, change, first, only, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { DatabaseRow } from './databases.js'

/** What can be changed about a database. */
export type Configuration = Pick<
  DatabaseRow,
  | 'account_id'
  | 'name'
  | 'plan'
  | 'budget'
  | 'eviction'
  | 'tls'
  | 'read_regions'
  | 'password'
  | 'rest_token'
  | 'read_only_rest_token'
  | 'auto_upgrade'
  | 'production_pack'
  | 'allowed_ips'
  | 'acl_users'
  | 'keyspace_events'
  | 'engine_settings'
  | 'client_authority'
  | 'last_upgrade_at'
>

/** What is going on with a database while a longer change is made. */
export type ChangingState = Exclude<DatabaseRow['modifying_state'], '' | 'creating' | 'deleting'>

/** A database and who has to own it. */
export interface DatabaseOfAccount {
  readonly accountId: string
  readonly databaseId: string
}

/** Why a change was not made. */
export type ChangeRefusal = { readonly kind: 'not_found' } | { readonly kind: 'busy'; readonly modifyingState: string }

const rowToChange = query<{ databaseId: string }, DatabaseRow>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('databases').selectAll().where('database_id', '=', p.databaseId)),
)

const setConfiguration = query<Configuration & { databaseId: string }>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({
      account_id: p.account_id,
      name: p.name,
      plan: p.plan,
      budget: p.budget,
      eviction: p.eviction,
      tls: p.tls,
      read_regions: p.read_regions,
      password: p.password,
      rest_token: p.rest_token,
      read_only_rest_token: p.read_only_rest_token,
      auto_upgrade: p.auto_upgrade,
      production_pack: p.production_pack,
      allowed_ips: p.allowed_ips,
      acl_users: p.acl_users,
      keyspace_events: p.keyspace_events,
      engine_settings: p.engine_settings,
      client_authority: p.client_authority,
      last_upgrade_at: p.last_upgrade_at,
    })
    .where('database_id', '=', p.databaseId),
)

const setModifyingState = query<{ databaseId: string; modifyingState: DatabaseRow['modifying_state'] }>(({ db, p }) =>
  db.updateTable('databases').set({ modifying_state: p.modifyingState }).where('database_id', '=', p.databaseId),
)

/** The row of a database that is at rest, locked, or why it cannot be changed now. */
export function* lockOwned({
  accountId,
  databaseId,
}: DatabaseOfAccount): Transaction<ChangeRefusal | { readonly kind: 'free'; readonly database: DatabaseRow }> {
  const row = yield* first(rowToChange, { databaseId })
  if (row?.account_id !== accountId) return { kind: 'not_found' }
  if (row.modifying_state === 'creating') return { kind: 'not_found' }
  if (row.modifying_state !== '') return { kind: 'busy', modifyingState: row.modifying_state }
  return { kind: 'free', database: row }
}

function* apply(row: DatabaseRow, set: Partial<Configuration>, audit: NewAuditRow): Transaction<DatabaseRow> {
  const changed = { ...row, ...set }
  yield* change(setConfiguration, { ...changed, databaseId: row.database_id })
  yield* recordAudit(audit)
  return changed
}

/** How a change was taken. `same`: everything was as desired already, so nothing was written. */
export type ConfigureOutcome =
  | ChangeRefusal
  | { readonly kind: 'changed'; readonly database: DatabaseRow }
  | { readonly kind: 'same'; readonly database: DatabaseRow }

/** Changes what a database should be, in one step. */
export const configure = write(
  'databases.configure',
  function* (
    args: DatabaseOfAccount & { set: Partial<Configuration>; audit: NewAuditRow },
  ): Transaction<ConfigureOutcome> {
    const found = yield* lockOwned(args)
    if (found.kind !== 'free') return found
    if (isSame(found.database, args.set)) return { kind: 'same', database: found.database }
    return { kind: 'changed', database: yield* apply(found.database, args.set, args.audit) }
  },
)

/** Whether a database is as desired already. */
export function isSame(row: DatabaseRow, set: Partial<Configuration>): boolean {
  const present: Partial<Record<string, unknown>> = row
  return Object.entries(set).every(([column, value]) => present[column] === value)
}

/** How the desired state to begin a longer change was taken. */
export type BeginOutcome = ChangeRefusal | { readonly kind: 'begun'; readonly database: DatabaseRow }

/** Marks a database as being changed. The row tells the old configuration until `finish`. */
export const begin = write(
  'databases.beginChange',
  function* (args: DatabaseOfAccount & { modifyingState: ChangingState }): Transaction<BeginOutcome> {
    const found = yield* lockOwned(args)
    if (found.kind !== 'free') return found
    const { databaseId, modifyingState } = args
    yield* change(setModifyingState, { databaseId, modifyingState })
    return { kind: 'begun', database: { ...found.database, modifying_state: modifyingState } }
  },
)

/**
 * Writes a longer change down as a whole, with its audit entry. Answers the changed row; `undefined` when the database
 * is not in that change any more.
 */
export const finish = write(
  'databases.finishChange',
  function* (args: {
    databaseId: string
    modifyingState: ChangingState
    set: Partial<Configuration>
    audit: NewAuditRow
  }): Transaction<DatabaseRow | undefined> {
    const { databaseId, modifyingState, set, audit } = args
    const row = yield* first(rowToChange, { databaseId })
    if (row?.modifying_state !== modifyingState) return undefined
    yield* change(setModifyingState, { databaseId, modifyingState: '' })
    return yield* apply({ ...row, modifying_state: '' }, set, audit)
  },
)

/** Gives a longer change up: the database is what it was. Does nothing when it is not in that change. */
export const abandon = write(
  'databases.abandonChange',
  function* (args: { databaseId: string; modifyingState: ChangingState }): Transaction<void> {
    const { databaseId, modifyingState } = args
    const row = yield* first(rowToChange, { databaseId })
    if (row?.modifying_state === modifyingState) yield* change(setModifyingState, { databaseId, modifyingState: '' })
  },
)

const roleInTeam = query<{ teamId: string; emailKey: string }, { role: 'owner' | 'admin' | 'dev' | 'finance' }>(
  ({ db, p }) =>
    db.selectFrom('team_members').select('role').where('team_id', '=', p.teamId).where('email_key', '=', p.emailKey),
)
const oneAtATime = query<object, { place: number }>(({ db, d }) =>
  d.forUpdate(db.selectFrom('installation').select('place')),
)
const countOfAccount = query<{ accountId: string }, { held: number }>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select(({ fn }) => fn.countAll<number>().as('held'))
    .where('account_id', '=', p.accountId),
)

const accountOf = query<{ accountId: string }, { type: 'free' | 'paid' }>(({ db, p }) =>
  db.selectFrom('accounts').select('type').where('account_id', '=', p.accountId),
)

/** What a move to a team asks for. */
export interface MoveArgs extends DatabaseOfAccount {
  readonly teamId: string
  /** E-mail of the caller in lower case. */
  readonly emailKey: string
  /** How many databases a team may hold, by the type of its account. */
  readonly limits: Readonly<Record<'free' | 'paid', number>>
  readonly audit: NewAuditRow
}

/** How a move was taken. */
export type MoveOutcome =
  | ConfigureOutcome
  | { readonly kind: 'no_such_team' }
  | { readonly kind: 'role_refused'; readonly role: string }
  | { readonly kind: 'limit_reached'; readonly accountType: 'free' | 'paid' }

/** Gives a database to a team in which the caller may manage databases. One move at a time, for the limit's sake. */
export const moveToTeam = write('databases.moveToTeam', function* (args: MoveArgs): Transaction<MoveOutcome> {
  yield* all(oneAtATime, {})
  const found = yield* lockOwned(args)
  if (found.kind !== 'free') return found
  const member = yield* first(roleInTeam, { teamId: args.teamId, emailKey: args.emailKey })
  if (!member) return { kind: 'no_such_team' }
  if (member.role === 'finance') return { kind: 'role_refused', role: member.role }
  if (found.database.account_id === args.teamId) return { kind: 'same', database: found.database }
  const { held } = yield* only(countOfAccount, { accountId: args.teamId })
  const { type } = yield* only(accountOf, { accountId: args.teamId })
  if (held >= args.limits[type]) return { kind: 'limit_reached', accountType: type }
  return { kind: 'changed', database: yield* apply(found.database, { account_id: args.teamId }, args.audit) }
})

const setState = query<{ databaseId: string; state: DatabaseRow['state'] }>(({ db, p }) =>
  db.updateTable('databases').set({ state: p.state }).where('database_id', '=', p.databaseId),
)

/**
 * What a move into or out of `suspended` asks for; the entry of the audit log goes to the account that owns the
 * database then.
 */
export interface SuspensionArgs {
  readonly databaseId: string
  readonly audit: Omit<NewAuditRow, 'account_id'>
}

function* move(args: SuspensionArgs, state: 'suspended' | 'active'): Transaction<DatabaseRow | undefined> {
  const row = yield* first(rowToChange, { databaseId: args.databaseId })
  if (row?.modifying_state !== '' || (row.state === 'suspended') === (state === 'suspended')) return undefined
  yield* change(setState, { databaseId: args.databaseId, state })
  yield* recordAudit({ ...args.audit, account_id: row.account_id })
  return { ...row, state }
}

/**
 * `active` or `passive` becomes `suspended`. Answers the row as it is then; `undefined` when the database is suspended
 * already, is being changed, or is gone.
 */
export const suspend = write('databases.suspend', (args: SuspensionArgs) => move(args, 'suspended'))

/** `suspended` becomes `active`; answers as `suspend` does. */
export const resume = write('databases.resume', (args: SuspensionArgs) => move(args, 'active'))
