import { type RawBuilder, sql } from 'kysely'
import { isPending } from '../../queue/transactions/messages.js'
import { write } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { type Ask, all, askChange, change, type Transaction } from '../../store/statement.js'

/**
 * The data that a cancel keeps for an undo: the pending deliveries, as one row for all runs of the call, and the waits, as
 * rows of `run_remains`. The steps stay where they are.
 */

/** A cancel that is about to delete the messages and waits of its runs. */
export interface Keeping {
  readonly seqs: readonly number[]
  readonly accountId: string
  /** `bulk_actions.seq`; 0 for the cancel of a single run. */
  readonly by: number
  /** Unix milliseconds. */
  readonly at: number
}

/** A delivery that was pending when its run was cancelled. */
export interface KeptDelivery {
  readonly runSeq: number
  readonly messageId: string
  /** When it was due, Unix milliseconds. */
  readonly dueAt: number
  /** Its delivery columns; `null` if they equal those of its element. */
  readonly delivery: object | null
  /** Its failed attempts so far. */
  readonly retried: number
  /** When it was made, Unix milliseconds; absent if an older version kept it. */
  readonly createdAt?: number | undefined
}

const COLUMNS = ['url', 'method', 'headers', 'config', 'max_retries', 'labels', 'flow_key', 'caller_ip', 'host', 'path']

const asJson = sql.join(COLUMNS.flatMap((column) => [sql.lit(column), sql.ref(column)]))

/** Part of the configuration of deliveries with the settings of their element. First deliveries and calls have their own. */
const PLAIN = sql.lit('"role":"step"')

const SETTINGS = sql.join(COLUMNS.map((column) => sql.ref(column)))

interface OfBatch extends Keeping {
  readonly first: number
  readonly last: number
}

const isKept = ({ p, d }: Building<OfBatch>) => sql`${d.inSharedNumbers('group_key', p.seqs)} and ${isPending}`

const isPlain = sql`instr(config, ${PLAIN}) > 0`

/** Members of a `SharedEntry` with a list each, and their columns. */
const LISTS = { runs: 'group_key', ids: 'message_id', due: 'next_at', retried: 'retried', created: 'created_at' }

/** One pending delivery of the first run, as the model: the others of a batch usually have the same settings. */
const modelOf = ({ p }: Building<OfBatch>) =>
  sql`select ${SETTINGS}, ${isPlain} as is_plain from messages where group_key = ${p.first} and ${isPending} limit 1`

/** Whether a message has the same settings as the model. SQLite reads each value of the model only once. */
const isLikeModel = sql`case when (select is_plain from model) then ${isPlain} else ${sql.join(
  COLUMNS.map((column) => sql`${sql.ref(column)} is (select ${sql.ref(column)} from model)`),
  sql` and `,
)} end`

const likeModelOnSqlite = sql.join(
  Object.entries(LISTS).map(
    ([name, column]) => sql`${sql.lit(`"${name}":`)} || json_group_array(${sql.ref(column)}) filter (where is_like)`,
  ),
  sql` || ',' || `,
)

/** The entry of a message with its own settings. SQLite reads the message again to get them. */
const aloneOnSqlite = sql`select json_array(group_key, message_id, next_at,
  case when ${isPlain} then null else json_object(${asJson}) end, retried, created_at)
  from messages as own where own.seq = kept.seq`

/** The entries of a batch as JSON. Messages share their encoded settings, because encoding settings costs most. */
const deliveries = {
  // Not grouped, because SQLite would sort the messages with all their settings. `limit -1` materializes `is_like`, so
  // that SQLite compares each message once, not once for each list.
  sqlite: (of: Building<OfBatch>) => sql`'[{"delivery":'
    || coalesce((select case when is_plain then null else json_object(${asJson}) end from model), 'null')
    || ',' || ${likeModelOnSqlite} || '}'
    || coalesce(group_concat(',' || (${aloneOnSqlite}), '') filter (where not is_like), '') || ']'
    from (select seq, ${sql.join(Object.values(LISTS).map((column) => sql.ref(column)))}, ${isLikeModel} as is_like
      from messages where ${isKept(of)} limit -1) as kept`,
  postgres: (of: Building<OfBatch>) => sql`coalesce(json_agg(shared)::text, '[]') from (
    select case when strpos(config, ${PLAIN}) > 0 then null else json_build_object(${asJson}) end as delivery,
      array_agg(group_key) as runs, array_agg(message_id) as ids, array_agg(next_at) as due,
      array_agg(retried) as retried, array_agg(created_at) as created
    from messages where ${isKept(of)} group by ${SETTINGS}) as shared`,
} as const satisfies Record<string, (of: Building<OfBatch>) => RawBuilder<unknown>>

const keepDeliveries = query<OfBatch>((of) => {
  const { db, p, d } = of
  const model = d.name === 'sqlite' ? sql`with model as materialized (${modelOf(of)})` : sql``
  const row = sql<never>`${model} select cast(${p.accountId} as text), cast(${p.by} as bigint), cast(${p.first} as bigint),
    cast(${p.last} as bigint), cast(${p.at} as bigint), ${deliveries[d.name](of)}`
  return db
    .insertInto('cancelled_deliveries')
    .columns(['account_id', 'cancelled_by', 'first_run', 'last_run', 'cancelled_at', 'deliveries'])
    .expression(row)
})

const waitAsJson = {
  sqlite: sql<string>`json_object('event_id', event_id, 'wait', wait, 'created_at', created_at)`,
  postgres: sql<string>`json_build_object('event_id', event_id, 'wait', wait, 'created_at', created_at)::text`,
}

const keepWaits = query<Pick<Keeping, 'seqs'>>(({ db, p, d }) =>
  db
    .insertInto('run_remains')
    .columns(['run_seq', 'kind', 'message_id', 'due_at', 'data'])
    .expression(
      db
        .selectFrom('run_waits')
        .select(['run_seq', sql<'wait'>`'wait'`.as('kind'), 'message_id', 'deadline', waitAsJson[d.name].as('data')])
        .where(d.inSharedNumbers('run_seq', p.seqs))
        .orderBy('seq'),
    ),
)

/** Asks to keep the deliveries and waits of runs, at least one: after the runs were locked, and before the deletion. */
export function askToKeep(keeping: Keeping): readonly Ask<number>[] {
  let [first, last] = [Number.POSITIVE_INFINITY, 0]
  for (const seq of keeping.seqs) {
    if (seq < first) first = seq
    if (seq > last) last = seq
  }
  return [askChange(keepDeliveries, { ...keeping, first, last }), askChange(keepWaits, { seqs: keeping.seqs })]
}

interface KeptRow {
  readonly first_run: number
  readonly last_run: number
  readonly cancelled_at: number
  readonly deliveries: string
}

const keptByAction = query<{ by: number; first: number; last: number }, KeptRow>(({ db, p }) =>
  db
    .selectFrom('cancelled_deliveries')
    .select(['first_run', 'last_run', 'cancelled_at', 'deliveries'])
    .where('cancelled_by', '=', p.by)
    .where('first_run', '<=', p.last)
    .where('last_run', '>=', p.first)
    .orderBy('seq'),
)
const keptAlone = query<{ seqs: readonly number[] }, KeptRow>(({ db, p, d }) =>
  db
    .selectFrom('cancelled_deliveries')
    .select(['first_run', 'last_run', 'cancelled_at', 'deliveries'])
    .where('cancelled_by', '=', sql.lit(0))
    .where(d.inNumbers('first_run', p.seqs))
    .orderBy('seq'),
)

/** A cancelled run. */
export interface CancelledRun {
  readonly seq: number
  readonly canceled_by: number | null
  readonly finished_at: number | null
}

/** Kept deliveries of cancelled runs, by `runs.seq`. A run without an entry was cancelled by a version that kept nothing. */
export function* readKept(runs: readonly CancelledRun[]): Transaction<Map<number, readonly KeptDelivery[]>> {
  const kept = new Map<number, readonly KeptDelivery[]>()
  const byAction = groupedBy(runs, (run) => run.canceled_by ?? 0)
  for (const [by, ofAction] of byAction) {
    const seqs = ofAction.map(({ seq }) => seq)
    const span = { first: Math.min(...seqs), last: Math.max(...seqs) }
    const rows = by === 0 ? yield* all(keptAlone, { seqs }) : yield* all(keptByAction, { by, ...span })
    for (const row of rows) addKept(kept, row, ofAction)
  }
  return kept
}

function groupedBy<Item>(items: readonly Item[], keyOf: (item: Item) => number): Map<number, Item[]> {
  const groups = new Map<number, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}

function addKept(kept: Map<number, readonly KeptDelivery[]>, row: KeptRow, runs: readonly CancelledRun[]): void {
  const isOfRow = ({ seq, finished_at }: CancelledRun): boolean =>
    seq >= row.first_run && seq <= row.last_run && finished_at === row.cancelled_at
  const mine = runs.filter(isOfRow)
  if (mine.length === 0) return
  const found = groupedBy(entriesOf(row.deliveries), ({ runSeq }) => runSeq)
  for (const { seq } of mine) kept.set(seq, found.get(seq) ?? [])
}

/** Deliveries with the same settings: one list for each member. */
interface SharedEntry {
  readonly delivery: object | null
  readonly runs: readonly number[]
  readonly ids: readonly string[]
  readonly due: readonly number[]
  readonly retried: readonly number[]
  readonly created: readonly number[]
}

/**
 * One delivery. SQLite writes it for a delivery that shares its settings with no other, and older versions for all. The
 * oldest versions left out the last two members.
 */
type Entry = readonly [number, string, number, object | null, number?, number?]

/** Reads what `keepDeliveries` wrote. */
function entriesOf(deliveries: string): KeptDelivery[] {
  const entries = JSON.parse(deliveries) as (Entry | SharedEntry)[]
  return entries.flatMap((entry) => ('runs' in entry ? deliveriesOf(entry) : [deliveryOf(entry)]))
}

const deliveryOf = ([runSeq, messageId, dueAt, delivery, retried = 0, createdAt]: Entry): KeptDelivery => {
  return { runSeq, messageId, dueAt, delivery, retried, createdAt }
}

const deliveriesOf = ({ delivery, runs, ids, due, retried, created }: SharedEntry): KeptDelivery[] =>
  runs.map((runSeq, index) => {
    const [messageId = '', dueAt = 0] = [ids[index], due[index]]
    return { runSeq, messageId, dueAt, delivery, retried: retried[index] ?? 0, createdAt: created[index] }
  })

const sweep = query<{ before: number; limit: number }>(({ db, p }) =>
  db
    .deleteFrom('cancelled_deliveries')
    .where('seq', 'in', db.selectFrom('cancelled_deliveries').select('seq').orderBy('seq').limit(p.limit))
    .where('cancelled_at', '<', p.before),
)

/**
 * Deletes the oldest kept deliveries: one row for each batch of a bulk cancel, or each run that was cancelled alone. The
 * retention of their runs ends at the same time. @returns whether others may be left.
 */
export const sweepKept = write(
  'runs.sweepKept',
  function* (args: { before: number; limit: number }): Transaction<boolean> {
    return (yield* change(sweep, args)) >= args.limit
  },
  { turn: 'background' },
)
