import type { Expression, ExpressionBuilder, SqlBool } from 'kysely'
import { sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { Tables } from '../../store/schema/index.js'
import { change, all as every, first, type Transaction } from '../../store/statement.js'
import type { DatabaseRow } from './database-row.js'

/** The databases that an operation is about: those of one node, by its name; all with the empty text. */
export interface OfHome {
  readonly home: string
}

/** A condition on rows with a `database_id`. */
export function isOfHome<Table extends 'databases' | 'backups' | 'deleted_backups' | 'imports' | 'restores'>(
  _: ExpressionBuilder<Tables, Table>,
  { home }: OfHome,
): Expression<SqlBool> {
  return sql<SqlBool>`(${home} = '' OR database_id IN (SELECT database_id FROM databases WHERE home = ${home}))`
}

const setHome = query<{ databaseId: string; home: string }>(({ db, p }) =>
  db.updateTable('databases').set({ home: p.home }).where('database_id', '=', p.databaseId).where('home', 'is', null),
)

/** Gives a home to a database that has none. Returns whether it had none. */
export const adopt = write('homes.adopt', function* (args: { databaseId: string; home: string }): Transaction<boolean> {
  return (yield* change(setHome, args)) > 0
})

const homeOf = query<{ databaseId: string }, { home: string | null; account_id: string }>(({ db, p }) =>
  db.selectFrom('databases').select(['home', 'account_id']).where('database_id', '=', p.databaseId),
)

/** A database of an account and the node that serves it. */
export interface FoundHome {
  readonly databaseId: string
  readonly home: string | null
}

function* homeFor(accountId: string, databaseId: string): Transaction<FoundHome | undefined> {
  const row = yield* first(homeOf, { databaseId })
  return row?.account_id === accountId ? { databaseId, home: row.home } : undefined
}

/** The home of a database; `undefined` when the account does not have it. */
export const find = read('homes.find', function* (args: { accountId: string; databaseId: string }): Transaction<
  FoundHome | undefined
> {
  return yield* homeFor(args.accountId, args.databaseId)
})

const databaseOfKey = query<{ accountId: string; key: string }, { database_id: string }>(({ db, p }) =>
  db
    .selectFrom('idempotency_keys')
    .select('database_id')
    .where('account_id', '=', p.accountId)
    .where('key', '=', p.key),
)

/** The home of the database that an account has created with an idempotency key. */
export const findByKey = read('homes.findByKey', function* (args: { accountId: string; key: string }): Transaction<
  FoundHome | undefined
> {
  const known = yield* first(databaseOfKey, args)
  return known && (yield* homeFor(args.accountId, known.database_id))
})

const homeOfSlug = query<{ slug: string }, FoundHome>(({ db, p }) =>
  db.selectFrom('databases').select(['database_id as databaseId', 'home']).where('slug', '=', p.slug),
)

/** The home of a database by the first label of its server name; undefined when there is no such database. */
export const findBySlug = read('homes.findBySlug', function* (args: { slug: string }): Transaction<
  FoundHome | undefined
> {
  return yield* first(homeOfSlug, args)
})

const everyHome = query<object, { home: string | null }>(({ db }) =>
  db.selectFrom('databases').select('home').distinct().where('home', 'is not', null),
)

/** The names of all nodes that serve databases. */
export const all = read('homes.all', function* (_: object): Transaction<readonly string[]> {
  return (yield* every(everyHome, {})).flatMap(({ home }) => home ?? [])
})

const ofHome = query<OfHome, DatabaseRow>(({ db, p }) =>
  db.selectFrom('databases').selectAll().where('home', '=', p.home),
)

/** All databases of a node. */
export const servedBy = read('homes.servedBy', function* (args: OfHome): Transaction<readonly DatabaseRow[]> {
  return yield* every(ofHome, args)
})

const servedRegions = query<object, { region: string | null }>(({ db }) =>
  db
    .selectFrom('nodes')
    .leftJoin('node_regions', 'node_regions.incarnation', 'nodes.incarnation')
    .select('region')
    .distinct()
    .where('state', 'in', ['live', 'draining']),
)

/** The regions of the nodes that take part; null: one of them serves all. */
export const regionsOfNodes = read('homes.regionsOfNodes', function* (_: object): Transaction<
  readonly (string | null)[]
> {
  return (yield* every(servedRegions, {})).map(({ region }) => region)
})

/** Where clients of a database connect to, and the node that serves it. */
export interface HomePort {
  readonly database_id: string
  readonly home: string
  readonly port: number
  readonly tls: number
  readonly read_regions: string
}

const PORT_COLUMNS = ['database_id', 'home', 'port', 'tls', 'read_regions'] as const

/** Without databases that are being created, whose port may still change, or deleted, whose port is closed. */
const portsBeside = query<{ node: string }, HomePort>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select(PORT_COLUMNS)
    .where('home', 'is not', null)
    .where('home', '!=', p.node)
    .where('modifying_state', 'not in', ['creating', 'deleting'])
    .$narrowType<{ home: string }>(),
)

/** The ports of all databases that other nodes serve. */
export const portsElsewhere = read('homes.portsElsewhere', function* (args: { node: string }): Transaction<
  readonly HomePort[]
> {
  return yield* every(portsBeside, args)
})

const portsByIds = query<{ databaseIds: readonly string[] }, HomePort>(({ db, p, d }) =>
  db
    .selectFrom('databases')
    .select(PORT_COLUMNS)
    .where(d.inTexts('database_id', p.databaseIds))
    .where('home', 'is not', null)
    .where('modifying_state', 'not in', ['creating', 'deleting'])
    .$narrowType<{ home: string }>(),
)

/** The ports of those of these databases that serve. */
export const portsOf = read('homes.portsOf', function* (args: { databaseIds: readonly string[] }): Transaction<
  readonly HomePort[]
> {
  return yield* every(portsByIds, args)
})
const moveHome = query<{ databaseId: string; from: string; to: string }>(({ db, p }) =>
  db.updateTable('databases').set({ home: p.to }).where('database_id', '=', p.databaseId).where('home', '=', p.from),
)

/** Gives a database of a node that is gone to another node. False when its home has changed meanwhile. */
export function* takeHome(databaseId: string, from: string, to: string): Transaction<boolean> {
  return (yield* change(moveHome, { databaseId, from, to })) > 0
}
