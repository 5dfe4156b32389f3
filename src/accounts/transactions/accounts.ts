import { type Insertable, type Selectable, sql } from 'kysely'
import { AUDIT_KEPT_SECONDS, MAX_AUDIT_SEARCHED } from '../../contract/accounts/audit-limits.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AccountsTable, ApiKeysTable, AuditLogTable, TeamMembersTable } from '../../store/schema/accounts.js'
import { all, change, first, insertAll, only, type Transaction } from '../../store/statement.js'
import { shortDetails } from '../short-details.js'
import { type NamedAuditRow, withNames } from './audit-names.js'
import { syncFirstTokens } from './first-tokens.js'
import { lockInstallation } from './installation.js'

/** An account as it is stored. */
export type AccountRow = Selectable<AccountsTable>
/** An API key as it is stored: its hash, never the key. */
export type ApiKeyRow = Selectable<ApiKeysTable>
/** An entry of the audit log. */
export type AuditRow = Selectable<AuditLogTable>
/** An entry of the audit log before it is inserted. */
export type NewAuditRow = Insertable<AuditLogTable>

const makeInstallation = query<{ id: string; at: number }>(({ db, p }) =>
  db
    .insertInto('installation')
    .values({ place: 1, installation_id: p.id, created_at: p.at })
    .onConflict((conflict) => conflict.column('place').doNothing()),
)
const installation = query<object, { installation_id: string }>(({ db }) =>
  db.selectFrom('installation').select('installation_id'),
)

/** The identity of this store. A new store takes `freshId`. */
export const identify = write(
  'accounts.identify',
  function* (args: { freshId: string; at: number }): Transaction<string> {
    const row = yield* first(installation, {})
    if (row) return row.installation_id
    // If two nodes start at the same time, the second one waits for the first and uses its identity.
    yield* change(makeInstallation, { id: args.freshId, at: args.at })
    return (yield* only(installation, {})).installation_id
  },
)

/** The highest sequence numbers of a store, which only grow. */
export interface StoreNumbers {
  readonly messages: number
  readonly runs: number
  /** Entries of the audit log. */
  readonly acts: number
}

const lastNumbers = query<object, StoreNumbers>(({ db, d }) =>
  db
    .selectFrom('installation')
    .select([
      d.lastNumber('messages').as('messages'),
      d.lastNumber('runs').as('runs'),
      d.lastNumber('audit_log').as('acts'),
    ]),
)

/** Reads the highest sequence numbers that were assigned. */
export const numbers = read('accounts.numbers', function* (_: object): Transaction<StoreNumbers | undefined> {
  return yield* first(lastNumbers, {})
})

const allAccounts = query<object, AccountRow>(({ db }) => db.selectFrom('accounts').selectAll().orderBy('created_at'))
const allKeys = query<object, ApiKeyRow>(({ db }) => db.selectFrom('api_keys').selectAll().orderBy('created_at'))

const allMembers = query<object, Selectable<TeamMembersTable>>(({ db }) => db.selectFrom('team_members').selectAll())

/** All accounts, keys and members of teams; they are few and held in memory. */
export const load = read('accounts.load', function* (_: object): Transaction<{
  accounts: AccountRow[]
  keys: ApiKeyRow[]
  members: Selectable<TeamMembersTable>[]
}> {
  return { accounts: yield* all(allAccounts, {}), keys: yield* all(allKeys, {}), members: yield* all(allMembers, {}) }
})

/** A new account with its first key. */
interface NewAccount {
  readonly account: Insertable<AccountsTable>
  readonly key: Insertable<ApiKeysTable>
}

function* insertAccount({ account, key }: NewAccount): Transaction<void> {
  yield* insertAll('accounts', [account])
  yield* insertAll('api_keys', [key])
  yield* syncFirstTokens(account.account_id)
}

/** Inserts an account with its first key. Fails when the e-mail is taken. */
export const create = write('accounts.create', insertAccount)

const someAccount = query<object, { account_id: string }>(({ db }) =>
  db.selectFrom('accounts').select('account_id').limit(1),
)

/** Inserts the first account, unless another node that started at the same time has done so. Returns whether it did. */
export const createFirst = write('accounts.createFirst', function* (args: NewAccount): Transaction<boolean> {
  yield* lockInstallation()
  if (yield* first(someAccount, {})) return false
  yield* insertAccount(args)
  return true
})

/** Locks an account until the commit, for rules over several of its rows; no row when it is gone. */
export const lockAccount = query<{ accountId: string }, { account_id: string }>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('accounts').select('account_id').where('account_id', '=', p.accountId)),
)

const setSigningKeys = query<{ accountId: string; current: string; next: string }>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({ signing_current: p.current, signing_next: p.next })
    .where('account_id', '=', p.accountId),
)
const signingKeys = query<{ accountId: string }, { signing_next: string }>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('accounts').select('signing_next').where('account_id', '=', p.accountId)),
)

/** Makes the next signing key the current one, and `fresh` the next. Returns `undefined` if there is no such account. */
export const rotateSigningKeys = write(
  'accounts.rotateSigningKeys',
  function* (args: {
    accountId: string
    fresh: string
    audit: NewAuditRow | undefined
  }): Transaction<{ current: string; next: string } | undefined> {
    const row = yield* first(signingKeys, { accountId: args.accountId })
    if (!row) return undefined
    yield* change(setSigningKeys, { accountId: args.accountId, current: row.signing_next, next: args.fresh })
    if (args.audit) yield* recordAudit(args.audit)
    return { current: row.signing_next, next: args.fresh }
  },
)

/** Greater than the sequence number of any audit entry. */
const NEWEST = Number.MAX_SAFE_INTEGER

/** Each new entry deletes up to this many expired entries, so that no background job is needed. */
const EXPIRED_PER_ENTRY = 10
const forgetOldest = query<{ madeBefore: number }>(({ db, p }) => {
  const oldest = db.selectFrom('audit_log').select(['seq', 'at']).orderBy('seq').limit(EXPIRED_PER_ENTRY).as('oldest')
  return db
    .deleteFrom('audit_log')
    .where('seq', 'in', db.selectFrom(oldest).select('seq').where('at', '<', p.madeBefore))
})

/** Inserts an audit entry. Transactions of other modules call it, so that a change and its entry are committed together. */
export function* recordAudit(entry: NewAuditRow): Transaction<void> {
  yield* change(forgetOldest, { madeBefore: entry.at - AUDIT_KEPT_SECONDS * 1000 })
  yield* insertAll('audit_log', [{ ...entry, details: shortDetails(entry.details) }])
}

/** Inserts an audit entry in a transaction of its own. */
export const audit = write('accounts.audit', recordAudit)

const auditEntries = query<{ accountId: string; limit: number; before: number }, AuditRow>(({ db, p }) =>
  db
    .selectFrom('audit_log')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('seq', '<', p.before)
    .orderBy('seq', 'desc')
    .limit(p.limit),
)
const SEARCHED = ['action', 'actor', 'entity', 'source', 'details'] as const
const searchedEntries = query<{ accountId: string; limit: number; before: number; search: string }, AuditRow>(
  ({ db, p, d }) =>
    db
      .selectFrom(
        db
          .selectFrom('audit_log')
          .selectAll()
          .where('account_id', '=', p.accountId)
          .where('seq', '<', p.before)
          .orderBy('seq', 'desc')
          .limit(MAX_AUDIT_SEARCHED)
          .as('recent'),
      )
      .selectAll()
      .where(
        sql<boolean>`(${sql.join(
          SEARCHED.map((column) => d.mentions(column, p.search)),
          sql` or `,
        )})`,
      )
      .orderBy('seq', 'desc')
      .limit(p.limit),
)
const auditPlace = query<{ accountId: string; logId: string }, { seq: number }>(({ db, p, d }) =>
  db.selectFrom('audit_log').select('seq').where('log_id', '=', p.logId).where(d.alsoIs('account_id', p.accountId)),
)

/** Selects entries of the audit log. */
interface AuditLogArgs {
  readonly accountId: string
  readonly limit: number
  readonly before?: string | undefined
  readonly search?: string | undefined
}

/**
 * The latest entries of an account, newest first.
 * @param args.before `log_id`: only entries older than this one; none if the account has no such entry.
 * @param args.search lower-case text: only entries that contain it, among the next `MAX_AUDIT_SEARCHED`.
 */
export const auditLog = read('accounts.auditLog', function* (args: AuditLogArgs): Transaction<NamedAuditRow[]> {
  const { accountId, limit, search } = args
  const place =
    args.before === undefined ? { seq: NEWEST } : yield* first(auditPlace, { accountId, logId: args.before })
  if (!place) return []
  const page = { accountId, limit, before: place.seq }
  const rows = search === undefined ? yield* all(auditEntries, page) : yield* all(searchedEntries, { ...page, search })
  return yield* withNames(accountId, rows)
})

/** The last entry that a search has read. */
export type AuditSearchEnd = Pick<AuditRow, 'log_id' | 'at'>

const auditAhead = query<{ accountId: string; before: number }, AuditSearchEnd>(({ db, p }) =>
  db
    .selectFrom('audit_log')
    .select(['log_id', 'at'])
    .where('account_id', '=', p.accountId)
    .where('seq', '<', p.before)
    .orderBy('seq', 'desc')
    .offset(sql.lit(MAX_AUDIT_SEARCHED - 1))
    .limit(1),
)

/** The last entry that a search beginning after an entry reads; `undefined` if it reads all older entries. */
export const auditSearchEnd = read(
  'accounts.auditSearchEnd',
  function* (args: { accountId: string; before?: string | undefined }): Transaction<AuditSearchEnd | undefined> {
    const { accountId, before } = args
    const place = before === undefined ? { seq: NEWEST } : yield* first(auditPlace, { accountId, logId: before })
    return place && (yield* first(auditAhead, { accountId, before: place.seq }))
  },
)
