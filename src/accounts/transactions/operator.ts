/** Transactions of the operator on accounts. A team is an account too, and follows the account of its owner. */
import type { Insertable } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AccountsTable, ApiKeysTable } from '../../store/schema/accounts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { type AccountRow, type NewAuditRow, recordAudit } from './accounts.js'
import { syncFirstTokens } from './first-tokens.js'
import { lockInstallation } from './installation.js'

const ownAccounts = query<object, AccountRow>(({ db }) =>
  db
    .selectFrom('accounts')
    .selectAll()
    .where('account_id', 'not in', db.selectFrom('teams').select('team_id'))
    .orderBy('created_at')
    .orderBy('account_id'),
)
const owners = query<object, { team_id: string; email_key: string }>(({ db }) =>
  db.selectFrom('team_members').select(['team_id', 'email_key']).where('role', '=', 'owner'),
)
const databaseCounts = query<object, { account_id: string; held: number }>(({ db }) =>
  db
    .selectFrom('databases')
    .select(({ fn }) => ['account_id', fn.countAll<number>().as('held')])
    .groupBy('account_id'),
)

/** An account with the numbers of its teams and databases, as the operator sees it. */
export interface OwnAccount {
  readonly row: AccountRow
  readonly teams: number
  readonly databases: number
}

function* withCounts(): Transaction<OwnAccount[]> {
  const rows = yield* all(ownAccounts, {})
  const teams = yield* all(owners, {})
  const held = new Map((yield* all(databaseCounts, {})).map((count) => [count.account_id, Number(count.held)]))
  return rows.map((row) => {
    const owned = teams.filter(({ email_key }) => email_key === row.email.toLowerCase())
    const ids = [row.account_id, ...owned.map(({ team_id }) => team_id)]
    return { row, teams: owned.length, databases: ids.reduce((sum, id) => sum + (held.get(id) ?? 0), 0) }
  })
}

/** All accounts that are not teams, oldest first. */
export const list = read('operator.list', function* (_: object): Transaction<OwnAccount[]> {
  return yield* withCounts()
})

/** Creates an account with its first key, unless its e-mail exists already, ignoring case. */
export const create = write(
  'operator.create',
  function* (args: {
    account: Insertable<AccountsTable>
    key: Insertable<ApiKeysTable>
    audit: NewAuditRow
  }): Transaction<'created' | 'email_taken'> {
    yield* lockInstallation()
    const present = yield* all(ownAccounts, {})
    const wanted = args.account.email.toLowerCase()
    if (present.some(({ email }) => email.toLowerCase() === wanted)) return 'email_taken'
    yield* insertAll('accounts', [args.account])
    yield* insertAll('api_keys', [args.key])
    yield* syncFirstTokens(args.account.account_id)
    yield* recordAudit(args.audit)
    return 'created'
  },
)

const setState = query<{ accountId: string; state: AccountRow['state'] }>(({ db, p }) =>
  db.updateTable('accounts').set({ state: p.state }).where('account_id', '=', p.accountId),
)

/** The account to change, and the entry in the operator's audit log. */
export interface AccountChange {
  readonly accountId: string
  readonly audit: NewAuditRow
}

/** Why an account is not changed. */
export type AccountRefusal = { readonly kind: 'not_found' } | { readonly kind: 'is_operator' }

function* findChangeable(accountId: string): Transaction<AccountRefusal | { kind: 'found'; row: AccountRow }> {
  yield* lockInstallation()
  const row = (yield* all(ownAccounts, {})).find((one) => one.account_id === accountId)
  if (!row) return { kind: 'not_found' }
  return row.operator === 1 ? { kind: 'is_operator' } : { kind: 'found', row }
}

/** Adds the e-mail of the account to an entry, because nothing else has it after the account is deleted. */
const naming = (audit: NewAuditRow, { email }: AccountRow): NewAuditRow => ({
  ...audit,
  details: JSON.stringify({ email }),
})

/** The outcome of `setSuspended`. */
export type SuspendOutcome =
  | AccountRefusal
  | { readonly kind: 'deleting' }
  | { readonly kind: 'changed' }
  | { readonly kind: 'same' }

/** Suspends or resumes an account. */
export const setSuspended = write(
  'operator.setSuspended',
  function* (args: AccountChange & { state: 'active' | 'suspended' }): Transaction<SuspendOutcome> {
    const found = yield* findChangeable(args.accountId)
    if (found.kind !== 'found') return found
    if (found.row.state === 'deleting') return { kind: 'deleting' }
    if (found.row.state === args.state) return { kind: 'same' }
    yield* change(setState, args)
    yield* recordAudit(naming(args.audit, found.row))
    return { kind: 'changed' }
  },
)

/** Changes of an account. Absent members stay. */
export interface ChangedLimits {
  readonly database_limit?: number | null
  readonly daily_messages?: number | null
  readonly account_type?: AccountRow['type']
}

type Limits = Pick<AccountRow, 'account_id' | 'type' | 'database_limit' | 'daily_messages'>
const setLimits = query<Limits>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({ database_limit: p.database_limit, daily_messages: p.daily_messages, type: p.type })
    .where('account_id', '=', p.account_id),
)
const setType = query<{ accountId: string; type: AccountRow['type'] }>(({ db, p }) =>
  db.updateTable('accounts').set({ type: p.type }).where('account_id', '=', p.accountId),
)

/** The outcome of `changeLimits`. */
export type LimitsOutcome =
  | AccountRefusal
  | { readonly kind: 'deleting' }
  | { readonly kind: 'changed'; readonly account: OwnAccount }

/** Changes the limits of an account, and its type together with that of the teams that it owns. */
export const changeLimits = write(
  'operator.changeLimits',
  function* (args: AccountChange & { changed: ChangedLimits }): Transaction<LimitsOutcome> {
    const found = yield* findChangeable(args.accountId)
    if (found.kind !== 'found') return found
    const { row } = found
    if (row.state === 'deleting') return { kind: 'deleting' }
    const { database_limit = row.database_limit, daily_messages = row.daily_messages } = args.changed
    const type = args.changed.account_type ?? row.type
    yield* change(setLimits, { account_id: args.accountId, type, database_limit, daily_messages })
    const emailKey = row.email.toLowerCase()
    for (const team of yield* all(owners, {})) {
      if (team.email_key === emailKey) yield* change(setType, { accountId: team.team_id, type })
    }
    yield* recordAudit(args.audit)
    const account = (yield* withCounts()).find((one) => one.row.account_id === args.accountId)
    return account ? { kind: 'changed', account } : { kind: 'not_found' }
  },
)

type OfAccount = { accountId: string }
const dropSessions = query<OfAccount>(({ db, p }) =>
  db
    .deleteFrom('console_sessions')
    .where('key_id', 'in', db.selectFrom('api_keys').select('key_id').where('account_id', '=', p.accountId)),
)
const dropKeys = query<OfAccount>(({ db, p }) => db.deleteFrom('api_keys').where('account_id', '=', p.accountId))
const dropTokens = query<OfAccount>(({ db, p }) => db.deleteFrom('queue_tokens').where('account_id', '=', p.accountId))
const dropHeldKeys = query<{ emailKey: string }>(({ db, p }) =>
  db.deleteFrom('api_keys').where('holder', '=', p.emailKey),
)
const dropMemberships = query<{ emailKey: string }>(({ db, p }) =>
  db.deleteFrom('team_members').where('email_key', '=', p.emailKey).where('role', '!=', 'owner'),
)

/** The outcome of `beginDelete`. */
export type BeginDeleteOutcome = AccountRefusal | { readonly kind: 'begun' }

/**
 * Marks an account and the teams that it owns as `deleting`, and deletes all their credentials and its memberships. May be
 * repeated. From then on, only the deletion changes their rows.
 */
export const beginDelete = write(
  'operator.beginDelete',
  function* (args: AccountChange): Transaction<BeginDeleteOutcome> {
    const found = yield* findChangeable(args.accountId)
    if (found.kind !== 'found') return found
    const emailKey = found.row.email.toLowerCase()
    const teams = (yield* all(owners, {})).filter((owner) => owner.email_key === emailKey)
    for (const accountId of [args.accountId, ...teams.map(({ team_id }) => team_id)]) {
      yield* change(setState, { accountId, state: 'deleting' })
      for (const drop of [dropSessions, dropKeys, dropTokens]) yield* change(drop, { accountId })
    }
    yield* change(dropHeldKeys, { emailKey })
    yield* change(dropMemberships, { emailKey })
    if (found.row.state !== 'deleting') yield* recordAudit(naming(args.audit, found.row))
    return { kind: 'begun' }
  },
)

const deletingAccounts = query<object, { account_id: string; email: string }>(({ db }) =>
  db.selectFrom('accounts').select(['account_id', 'email']).where('state', '=', 'deleting').orderBy('account_id'),
)

/**
 * The deletions that have begun. Each lists the teams of an account and then the account, which is deleted last. A team
 * whose owner's account stays is a separate deletion.
 */
export const deleting = read('operator.deleting', function* (_: object): Transaction<string[][]> {
  const rows = yield* all(deletingAccounts, {})
  const ownerOf = new Map((yield* all(owners, {})).map(({ team_id, email_key }) => [team_id, email_key]))
  const teamsOf = (email: string): string[] =>
    rows.map(({ account_id }) => account_id).filter((id) => ownerOf.get(id) === email.toLowerCase())
  const whole = rows.map(({ account_id, email }) => [...teamsOf(email), account_id])
  const behind = new Set(whole.flatMap((ids) => ids.slice(0, -1)))
  return whole.filter((ids) => !behind.has(ids.at(-1) ?? ''))
})

const stateOf = query<OfAccount, { state: AccountRow['state'] }>(({ db, p }) =>
  db.selectFrom('accounts').select('state').where('account_id', '=', p.accountId),
)
const aDatabase = query<OfAccount, { found: string }>(({ db, p }) =>
  db.selectFrom('databases').select('database_id as found').where('account_id', '=', p.accountId).limit(1),
)
const aMessage = query<OfAccount, { found: number }>(({ db, p }) =>
  db.selectFrom('messages').select('seq as found').where('account_id', '=', p.accountId).limit(1),
)
const aRun = query<OfAccount, { found: number }>(({ db, p }) =>
  db.selectFrom('runs').select('seq as found').where('account_id', '=', p.accountId).limit(1),
)
const LAST_ROWS = [
  // Credentials may have been created after the deletion began, by requests that were accepted before it.
  ...[dropSessions, dropKeys, dropTokens],
  query<OfAccount>(({ db, p }) => db.deleteFrom('audit_log').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('idempotency_keys').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('team_members').where('team_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('teams').where('team_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('accounts').where('account_id', '=', p.accountId)),
]

/** Deletes the last rows of an account that is being deleted. False while it still has databases, messages or runs. */
export const finishDelete = write('operator.finishDelete', function* (args: OfAccount): Transaction<boolean> {
  yield* lockInstallation()
  if ((yield* first(stateOf, args))?.state !== 'deleting') return true
  for (const query of [aDatabase, aMessage, aRun]) if (yield* first<OfAccount, object>(query, args)) return false
  for (const drop of LAST_ROWS) yield* change(drop, args)
  return true
})
