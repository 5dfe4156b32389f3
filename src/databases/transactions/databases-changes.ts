/**
 * Changes of an existing database. Each transaction locks the row and checks `modifying_state` first: of two concurrent
 * changes one wins, and the other is refused with the state that it met.
 *
 * A short change is `configure`. A long one is `begin`, then the work, then `finish`, which writes the whole change;
 * `abandon` in its place leaves the row unchanged.
 */

import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { lockInstallation } from '../../accounts/transactions/installation.js'
import { roleOf } from '../../accounts/transactions/teams.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, first, only, type Transaction } from '../../store/statement.js'
import { countOfAccount, type DatabaseRow, rowToChange, setModifyingState } from './database-row.js'
import { type DatabaseOfAccount, HAS_MOVED, isHomeOf } from './home-check.js'

/** The columns that changes may set. */
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
  | 'suspended_by_owner'
>

/** The `modifying_state` of a database during a long change. */
export type ChangingState = Exclude<DatabaseRow['modifying_state'], '' | 'creating' | 'deleting'>

/** Why a change was not made. */
export type ChangeRefusal = { readonly kind: 'not_found' } | { readonly kind: 'busy'; readonly modifyingState: string }

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
      suspended_by_owner: p.suspended_by_owner,
    })
    .where('database_id', '=', p.databaseId),
)

/** Locks the row of a database of the account, or returns why it cannot be changed now. */
function* lockOwned({
  accountId,
  databaseId,
  home,
}: DatabaseOfAccount): Transaction<ChangeRefusal | { readonly kind: 'free'; readonly database: DatabaseRow }> {
  const row = yield* first(rowToChange, { databaseId })
  if (row?.account_id !== accountId) return { kind: 'not_found' }
  if (row.modifying_state === 'creating') return { kind: 'not_found' }
  if (row.modifying_state !== '') return { kind: 'busy', modifyingState: row.modifying_state }
  if (!isHomeOf(row, home)) return HAS_MOVED
  return { kind: 'free', database: row }
}

function* apply(row: DatabaseRow, set: Partial<Configuration>, audit: NewAuditRow): Transaction<DatabaseRow> {
  const changed = { ...row, ...set }
  yield* change(setConfiguration, { ...changed, databaseId: row.database_id })
  yield* recordAudit(audit)
  return changed
}

/** The outcome of `configure`. `same`: the row had the desired state already, so nothing was written. */
export type ConfigureOutcome =
  | ChangeRefusal
  | { readonly kind: 'changed'; readonly database: DatabaseRow }
  | { readonly kind: 'same'; readonly database: DatabaseRow }

/** Makes a short change. */
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

/** Whether a row has the desired state already. */
export function isSame(row: DatabaseRow, set: Partial<DatabaseRow>): boolean {
  const present: Partial<Record<string, unknown>> = row
  return Object.entries(set).every(([column, value]) => present[column] === value)
}

/** The columns of a row by which clients are served. Writes of the other columns do not concern the data plane. */
export function servedBy(row: DatabaseRow): Partial<DatabaseRow> {
  const { modifying_state: _, data_problem: __, next_daily_backup_at: ___, home: ____, ...served } = row
  return served
}

/** The outcome of `begin`. */
export type BeginOutcome = ChangeRefusal | { readonly kind: 'begun'; readonly database: DatabaseRow }

/** Starts a long change. The row keeps the old configuration until `finish`. */
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
 * Writes a long change with its audit entry. Returns the changed row; `undefined` when the database is no longer in that
 * change.
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

/** Ends a long change and keeps the old configuration. Does nothing when the database is not in that change. */
export const abandon = write(
  'databases.abandonChange',
  function* (args: { databaseId: string; modifyingState: ChangingState }): Transaction<void> {
    const { databaseId, modifyingState } = args
    const row = yield* first(rowToChange, { databaseId })
    if (row?.modifying_state === modifyingState) yield* change(setModifyingState, { databaseId, modifyingState: '' })
  },
)

const accountOf = query<{ accountId: string }, { type: 'free' | 'paid' }>(({ db, p }) =>
  db.selectFrom('accounts').select('type').where('account_id', '=', p.accountId),
)

/** Arguments of `moveToTeam`. */
export interface MoveArgs extends DatabaseOfAccount {
  readonly teamId: string
  /** E-mail of the caller in lower case. */
  readonly emailKey: string
  /** How many databases a team may hold, by the type of its account. */
  readonly limits: Readonly<Record<'free' | 'paid', number>>
  readonly audit: NewAuditRow
}

/** The outcome of `moveToTeam`. */
export type MoveOutcome =
  | ConfigureOutcome
  | { readonly kind: 'no_such_team' }
  | { readonly kind: 'role_refused'; readonly role: string }
  | { readonly kind: 'limit_reached'; readonly accountType: 'free' | 'paid' }

/** Moves a database to a team in which the caller may manage databases. Moves are serialised to keep the team's limit. */
export const moveToTeam = write('databases.moveToTeam', function* (args: MoveArgs): Transaction<MoveOutcome> {
  yield* lockInstallation()
  const found = yield* lockOwned(args)
  if (found.kind !== 'free') return found
  const member = yield* first(roleOf, { teamId: args.teamId, emailKey: args.emailKey })
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
 * Arguments of `suspend` and `resume`. The audit entry goes to the account that owns the database at that moment.
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
 * `active` becomes `suspended`. Returns the changed row; `undefined` when the database is suspended already, busy or gone.
 */
export const suspend = write('databases.suspend', (args: SuspensionArgs) => move(args, 'suspended'))

/** `suspended` becomes `active`. Returns the changed row; `undefined` when the database is not suspended, busy or gone. */
export const resume = write('databases.resume', (args: SuspensionArgs) => move(args, 'active'))
