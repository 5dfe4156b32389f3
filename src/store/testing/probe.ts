import { type Kysely, sql } from 'kysely'
import { HomeportError } from '../../contract/errors/errors.js'
import { postgresDialect, sqliteDialect } from '../dialect.js'
import { read, write } from '../operation.js'
import { type Query, query } from '../query.js'
import type { Assigned } from '../schema/assigned.js'
import type { Tables } from '../schema/index.js'
import { type Ask, all, atOnce, change, only, type Statement, type Transaction } from '../statement.js'

/** A row of the table for tests of the store itself. */
export interface ProbeRow {
  readonly id: number
  readonly name: string
  readonly amount: number | null
  readonly note: string | null
  readonly data: Uint8Array | null
}

/** A row to insert. */
export type NewProbe = { readonly name: string } & Partial<Omit<ProbeRow, 'id' | 'name'>>

interface ProbeTables {
  probe: Omit<ProbeRow, 'id'> & { id: Assigned<number> }
}

/** The table is not part of the schema, so its type is added by a cast. */
const probes = (db: Kysely<Tables>): Kysely<ProbeTables> => db as unknown as Kysely<ProbeTables>

/** Pass it to `describeOnEveryStore`, so that store threads load the operations of this file. */
export const PROBE_MODULE = import.meta.url

const createTable: Query<object, unknown> = {
  compile(dialect) {
    const t = dialect === sqliteDialect ? sqliteDialect.types : postgresDialect.types
    const columns = `id ${t.serial}, name ${t.text} NOT NULL UNIQUE, amount ${t.integer}, note ${t.text}, data ${t.bytes}`
    return { name: 'probe', sql: `CREATE TABLE IF NOT EXISTS probe (${columns})`, slots: [] }
  },
}

const clear = query<object>(({ db }) => probes(db).deleteFrom('probe'))

/** Creates the table, or empties it. */
export const install = write('probe.install', function* (_: object): Transaction<void> {
  yield* change(createTable, {})
  yield* change(clear, {})
})

function* insertProbes(rows: readonly NewProbe[]): Transaction<void> {
  const statement: Statement = { kind: 'insert', table: 'probe' as keyof Tables, rows }
  yield statement
}

/** Inserts rows; then refuses if `refuseWith` is set. */
export const add = write(
  'probe.add',
  function* (args: { rows: readonly NewProbe[]; refuseWith?: string }): Transaction<number> {
    yield* insertProbes(args.rows)
    if (args.refuseWith !== undefined) throw new HomeportError('invalid_request', { problem: args.refuseWith })
    return args.rows.length
  },
)

const countAmong = query<{ ids: readonly number[] }, { count: number }>(({ db, p, d }) =>
  probes(db)
    .selectFrom('probe')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(d.inSharedNumbers('id', p.ids)),
)

/** Counts the rows of each list, one after the other in one transaction; then refuses if `refuseWith` is set. */
export const countEach = write(
  'probe.countEach',
  function* (args: { lists: readonly (readonly number[])[]; refuseWith?: string }): Transaction<number[]> {
    const counts: number[] = []
    for (const ids of args.lists) counts.push(Number((yield* only(countAmong, { ids })).count))
    if (args.refuseWith !== undefined) throw new HomeportError('invalid_request', { problem: args.refuseWith })
    return counts
  },
)

/** Inserts rows with one statement. */
export const addSingle = write('probe.addSingle', ({ rows }: { rows: readonly NewProbe[] }) => insertProbes(rows), {
  isSingle: () => true,
})

/** Inserts rows with a statement each, all known at once. */
export const addAtOnce = write('probe.addAtOnce', function* ({ rows }: { rows: readonly NewProbe[] }) {
  const asks = rows.map((row): Ask<unknown> => {
    return { statement: { kind: 'insert', table: 'probe' as keyof Tables, rows: [row] } }
  })
  yield* atOnce<readonly unknown[]>(asks, 'last')
})

/** Inserts rows as a background batch. */
export const addInBackground = write(
  'probe.addInBackground',
  ({ rows }: { rows: readonly NewProbe[] }) => insertProbes(rows),
  { turn: 'background' },
)

/** Inserts rows with the next write, or after a minute. */
export const addDelayed = write('probe.addPatiently', ({ rows }: { rows: readonly NewProbe[] }) => insertProbes(rows), {
  maxDelayMs: 60_000,
})

/** Inserts rows with the next write, or after 5 ms. */
export const addSoon = write('probe.addSoon', ({ rows }: { rows: readonly NewProbe[] }) => insertProbes(rows), {
  maxDelayMs: 5,
})

const allRows = query<object, ProbeRow>(({ db }) => probes(db).selectFrom('probe').selectAll().orderBy('id'))

/** All rows in the order of insertion. */
export const list = read('probe.list', function* (_: object): Transaction<ProbeRow[]> {
  return yield* all(allRows, {})
})

const named = query<{ name: string }, ProbeRow>(({ db, p, d }) =>
  d.forUpdate(probes(db).selectFrom('probe').selectAll().where('name', '=', p.name)),
)
const setAmount = query<{ name: string; amount: number }>(({ db, p }) =>
  probes(db).updateTable('probe').set({ amount: p.amount }).where('name', '=', p.name),
)

/** Increases the amounts of rows one by one: reads each, then writes the sum. Returns the last amount. */
export const increase = write('probe.increase', function* (args: { names: string[]; by: number }): Transaction<number> {
  let amount = 0
  for (const name of args.names) {
    const row = yield* only(named, { name })
    amount = (row.amount ?? 0) + args.by
    yield* change(setAmount, { name, amount })
  }
  return amount
})

const renameLike = query<{ name: string; amount: number }>(({ db, p }) =>
  probes(db).updateTable('probe').set({ note: 'touched' }).where('name', '=', p.name).where('amount', '=', p.amount),
)

/** Changes the matching rows; returns their number. */
export const touch = write('probe.touch', (args: { name: string; amount: number }) => change(renameLike, args))

const sums = query<object, { total: number; many: number; high: number; odd: number }>(({ db }) =>
  probes(db)
    .selectFrom('probe')
    .select(({ fn }) => [
      fn.coalesce(fn.sum<number>('amount'), sql<number>`0`).as('total'),
      fn.countAll<number>().as('many'),
      fn.coalesce(fn.max('amount'), sql<number>`0`).as('high'),
      sql<number>`count(*) > 0`.as('odd'),
    ]),
)

/** Computes the same sums twice in one transaction, with many other statements in between. */
export const sumTwice = read('probe.sumTwice', function* (_: object) {
  const before = yield* only(sums, {})
  for (let i = 0; i < 20; i++) yield* all(allRows, {})
  return { before, after: yield* only(sums, {}) }
})

const names = (
  build: Parameters<typeof query<{ text: string; texts: string[]; numbers: number[] }, { name: string }>>[0],
) => query<{ text: string; texts: string[]; numbers: number[] }, { name: string }>(build)
const base = (db: Kysely<Tables>) => probes(db).selectFrom('probe').select('name').orderBy('name')

const searches = {
  contains: names(({ db, p, d }) => base(db).where(d.contains('name', p.text))),
  startsWith: names(({ db, p, d }) => base(db).where(d.startsWith('name', p.text))),
  inTexts: names(({ db, p, d }) => base(db).where(d.inTexts('name', p.texts))),
  inNumbers: names(({ db, p, d }) => base(db).where(d.inNumbers('amount', p.numbers))),
  someStart: names(({ db, p, d }) => base(db).where(d.someText(p.texts, (item) => d.startsWith('name', item)))),
  all: names(({ db }) => base(db)),
}

/** Names of the rows that a search finds, sorted. */
export const search = read(
  'probe.search',
  function* (args: { how: keyof typeof searches; text?: string; texts?: string[]; numbers?: number[] }) {
    const found = yield* all(searches[args.how], { text: '', texts: [], numbers: [], ...args })
    return found.map((row) => row.name)
  },
)

/** Returns a value that cannot be cloned. */
export const uncloneable = write(
  'probe.uncloneable',
  function* (args: { rows: readonly NewProbe[] }): Transaction<object> {
    yield* insertProbes(args.rows)
    return { call: () => undefined }
  },
)
