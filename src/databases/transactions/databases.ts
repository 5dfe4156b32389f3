import type { Insertable, Selectable } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { lockInstallation } from '../../accounts/transactions/installation.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { DatabasesTable, IdempotencyKeysTable } from '../../store/schema/databases.js'
import { all, change, first, insertAll, only, type Transaction } from '../../store/statement.js'
import { countOfAccount, type DatabaseRow, rowOf, rowToChange } from './database-row.js'
import { type DatabaseOfAccount, HAS_MOVED, isHomeOf } from './home-check.js'
import { forgetMoves } from './moves.js'
import { type FirstStandby, placeFirst } from './standby-sets.js'
import { forgetUsage } from './usage.js'

/** A new database without its port and slug. */
export type NewDatabase = Omit<Insertable<DatabasesTable>, 'port' | 'slug' | 'modifying_state' | 'state'>

/** The range of ports to choose from, both ends included, without the ports to avoid. */
export interface PortChoice {
  readonly from: number
  readonly to: number
  readonly avoid: readonly number[]
}

/** Arguments of `create`. */
export interface CreateArgs {
  readonly database: NewDatabase
  readonly ports: PortChoice
  /** Candidates; the first that is free is taken. */
  readonly slugs: readonly string[]
  /** How many databases the account may hold. */
  readonly limit: number
  readonly idempotency?: { readonly key: string; readonly requestHash: string } | undefined
  /** Idempotency keys created before this time are deleted, Unix milliseconds. */
  readonly forgetBefore: number
  /** Set when its data is on disk already: the database serves at once, without the state `creating`. */
  readonly adopted?: { readonly audit: NewAuditRow }
}

/** The outcome of `create`. Only `created` has changed anything. */
export type CreateOutcome =
  | { readonly kind: 'created'; readonly database: DatabaseRow }
  | { readonly kind: 'repeated'; readonly databaseId: string }
  | { readonly kind: 'key_conflict' }
  | { readonly kind: 'key_gone' }
  | { readonly kind: 'limit_reached' }
  | { readonly kind: 'account_gone' }
  | { readonly kind: 'no_port' }
  | { readonly kind: 'no_slug' }

const accountOf = query<{ accountId: string }, { state: string }>(({ db, p }) =>
  db.selectFrom('accounts').select('state').where('account_id', '=', p.accountId),
)
const idsOfAccount = query<{ accountId: string }, { database_id: string }>(({ db, p }) =>
  db.selectFrom('databases').select('database_id').where('account_id', '=', p.accountId).orderBy('database_id'),
)

/** The ids of all databases of an account, in whatever state. */
export const idsOf = read('databases.idsOf', function* (args: { accountId: string }): Transaction<string[]> {
  return (yield* all(idsOfAccount, args)).map(({ database_id }) => database_id)
})

const usedPorts = query<object, { port: number }>(({ db }) => db.selectFrom('databases').select('port'))
const usedSlugs = query<{ slugs: readonly string[] }, { slug: string }>(({ db, p, d }) =>
  db.selectFrom('databases').select('slug').where(d.inTexts('slug', p.slugs)),
)
const keyOf = query<{ accountId: string; key: string }, Selectable<IdempotencyKeysTable>>(({ db, p }) =>
  db.selectFrom('idempotency_keys').selectAll().where('account_id', '=', p.accountId).where('key', '=', p.key),
)
const forgetKeys = query<{ before: number }>(({ db, p }) =>
  db.deleteFrom('idempotency_keys').where('created_at', '<', p.before),
)
const forgetKeyOf = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('idempotency_keys').where('database_id', '=', p.databaseId),
)

function* freePort(choice: PortChoice): Transaction<number | undefined> {
  const taken = new Set(choice.avoid)
  for (const { port } of yield* all(usedPorts, {})) taken.add(port)
  for (let port = choice.from; port <= choice.to; port++) if (!taken.has(port)) return port
  return undefined
}

function* freeSlug(slugs: readonly string[]): Transaction<string | undefined> {
  const taken = new Set((yield* all(usedSlugs, { slugs })).map((row) => row.slug))
  return slugs.find((slug) => !taken.has(slug))
}

function* findRepeat(args: CreateArgs): Transaction<CreateOutcome | undefined> {
  yield* change(forgetKeys, { before: args.forgetBefore })
  if (!args.idempotency) return undefined
  const { key, requestHash } = args.idempotency
  const known = yield* first(keyOf, { accountId: args.database.account_id, key })
  if (!known) return undefined
  if (known.request_hash !== requestHash) return { kind: 'key_conflict' }
  const row = yield* first(rowOf, { databaseId: known.database_id })
  return row ? { kind: 'repeated', databaseId: row.database_id } : { kind: 'key_gone' }
}

function* rememberKey({ database, idempotency }: CreateArgs): Transaction<void> {
  if (!idempotency) return
  const { account_id, database_id, created_at } = database
  const { key, requestHash: request_hash } = idempotency
  yield* insertAll('idempotency_keys', [{ account_id, key, request_hash, database_id, created_at }])
}

/**
 * Inserts a database in `modifying_state` `creating`, and assigns its port and slug. Creations are serialised, because
 * ports and slugs are unique across accounts.
 */
export const create = write('databases.create', function* (args: CreateArgs): Transaction<CreateOutcome> {
  yield* lockInstallation()
  const repeat = yield* findRepeat(args)
  if (repeat) return repeat
  // A request that was admitted before must not outlive the deletion of its account.
  const account = yield* first(accountOf, { accountId: args.database.account_id })
  if (!account || account.state === 'deleting') return { kind: 'account_gone' }
  const { held } = yield* only(countOfAccount, { accountId: args.database.account_id })
  if (held >= args.limit) return { kind: 'limit_reached' }
  const port = yield* freePort(args.ports)
  if (port === undefined) return { kind: 'no_port' }
  const slug = yield* freeSlug(args.slugs)
  if (slug === undefined) return { kind: 'no_slug' }
  const modifying_state = args.adopted ? ('' as const) : ('creating' as const)
  const row = { ...args.database, port, slug, state: 'active' as const, modifying_state }
  yield* insertAll('databases', [row])
  if (args.adopted) yield* recordAudit(args.adopted.audit)
  yield* rememberKey(args)
  return { kind: 'created', database: yield* only(rowOf, { databaseId: row.database_id }) }
})

const setPort = query<{ databaseId: string; port: number }>(({ db, p }) =>
  db.updateTable('databases').set({ port: p.port }).where('database_id', '=', p.databaseId),
)

/** Assigns another port to a database that is being created. Returns it, or `undefined` when none is free. */
export const movePort = write(
  'databases.movePort',
  function* (args: { databaseId: string; ports: PortChoice }): Transaction<number | undefined> {
    yield* lockInstallation()
    const port = yield* freePort(args.ports)
    if (port !== undefined) yield* change(setPort, { databaseId: args.databaseId, port })
    return port
  },
)

const finish = query<{ databaseId: string }>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: '' })
    .where('database_id', '=', p.databaseId)
    .where('modifying_state', '=', 'creating'),
)

/** Arguments of `finishCreate`. */
export interface FinishedCreation {
  readonly databaseId: string
  readonly audit: NewAuditRow
  /** The standby that it gets; absent: none. */
  readonly standby?: FirstStandby | undefined
}

/** `creating` becomes (empty): the database serves. Returns its row, or `undefined` when it was not being created. */
export const finishCreate = write(
  'databases.finishCreate',
  function* ({ databaseId, audit, standby }: FinishedCreation): Transaction<DatabaseRow | undefined> {
    const changed = yield* change(finish, { databaseId })
    if (changed === 0) return undefined
    yield* recordAudit(audit)
    if (standby) yield* placeFirst(databaseId, standby)
    return yield* first(rowOf, { databaseId })
  },
)

const dropIf = query<{ databaseId: string; modifyingState: DatabaseRow['modifying_state'] }>(({ db, p }) =>
  db.deleteFrom('databases').where('database_id', '=', p.databaseId).where('modifying_state', '=', p.modifyingState),
)

/** Deletes the row of a failed creation and its idempotency key, so that the caller may retry. */
export const undoCreate = write('databases.undoCreate', function* (args: { databaseId: string }): Transaction<void> {
  const dropped = yield* change(dropIf, { databaseId: args.databaseId, modifyingState: 'creating' })
  if (dropped > 0) yield* change(forgetKeyOf, { databaseId: args.databaseId })
})

/** The outcome of `beginDelete`. */
export type DeleteOutcome =
  | { readonly kind: 'deleting' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'busy'; readonly modifyingState: string }

const markDeleting = query<{ databaseId: string }>(({ db, p }) =>
  db.updateTable('databases').set({ modifying_state: 'deleting' }).where('database_id', '=', p.databaseId),
)

/** Marks a database as `deleting`. One that is marked already stays so: an earlier deletion was interrupted. */
export const beginDelete = write(
  'databases.beginDelete',
  function* (args: DatabaseOfAccount & { audit: NewAuditRow }): Transaction<DeleteOutcome> {
    const row = yield* first(rowToChange, { databaseId: args.databaseId })
    if (row?.account_id !== args.accountId) return { kind: 'not_found' }
    if (row.modifying_state === 'deleting') return { kind: 'deleting' }
    if (row.modifying_state !== '') return { kind: 'busy', modifyingState: row.modifying_state }
    if (!isHomeOf(row, args.home)) return HAS_MOVED
    yield* change(markDeleting, { databaseId: args.databaseId })
    yield* recordAudit(args.audit)
    return { kind: 'deleting' }
  },
)

/** Deletes the row of a deleted database. Its idempotency key stays, so that a late retry does not create another. */
export const finishDelete = write(
  'databases.finishDelete',
  function* (args: { databaseId: string }): Transaction<void> {
    const dropped = yield* change(dropIf, { databaseId: args.databaseId, modifyingState: 'deleting' })
    if (dropped === 0) return
    yield* forgetUsage(args.databaseId)
    yield* forgetMoves(args.databaseId)
  },
)

const everyId = query<object, { database_id: string }>(({ db }) => db.selectFrom('databases').select('database_id'))

/** The ids of all databases of all accounts. */
export const ids = read('databases.ids', function* (_: object): Transaction<string[]> {
  return (yield* all(everyId, {})).map((row) => row.database_id)
})

/** The database with this id, if the account has it. */
export const get = read('databases.get', function* (args: { accountId: string; databaseId: string }): Transaction<
  DatabaseRow | undefined
> {
  const row = yield* first(rowOf, { databaseId: args.databaseId })
  return row?.account_id === args.accountId ? row : undefined
})

/** The database with this id, whatever account has it. */
export const find = read('databases.find', function* (args: { databaseId: string }): Transaction<
  DatabaseRow | undefined
> {
  return yield* first(rowOf, args)
})

/** The position of a database in the list; a page starts after it. */
export interface ListPlace {
  readonly created_at: number
  readonly database_id: string
}

/** The position of a database. */
export const placeOf = (row: DatabaseRow | undefined): ListPlace | undefined =>
  row && { created_at: row.created_at, database_id: row.database_id }

interface PageArgs {
  readonly accountId: string
  /** Absent: from the oldest. */
  readonly after?: ListPlace | undefined
  readonly limit: number
}

const pageOfAccount = query<{ accountId: string; limit: number } & ListPlace, DatabaseRow>(({ db, p }) =>
  db
    .selectFrom('databases')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('created_at', '>=', p.created_at)
    .where(({ eb, or }) => or([eb('created_at', '>', p.created_at), eb('database_id', '>', p.database_id)]))
    .orderBy('created_at')
    .orderBy('database_id')
    .limit(p.limit),
)

/** A page of an account's databases, oldest first. Pages, because reading thousands at once blocks other transactions. */
export const list = read('databases.list', function* ({ accountId, after, limit }: PageArgs): Transaction<
  DatabaseRow[]
> {
  const { created_at, database_id } = after ?? { created_at: 0, database_id: '' }
  return yield* all(pageOfAccount, { accountId, limit, created_at, database_id })
})

interface LoadArgs {
  /** The id of the last database that was read; the empty text starts from the first. */
  readonly after: string
  readonly limit: number
}

const pageOfAll = query<LoadArgs, DatabaseRow>(({ db, p }) =>
  db.selectFrom('databases').selectAll().where('database_id', '>', p.after).orderBy('database_id').limit(p.limit),
)

/** A page of all databases of all accounts, by id. */
export const load = read('databases.load', function* (args: LoadArgs): Transaction<DatabaseRow[]> {
  return yield* all(pageOfAll, args)
})
