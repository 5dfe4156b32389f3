import { type Compilable, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Dialect } from '../../store/dialect.js'
import { read } from '../../store/operation.js'
import { type Building, type Query, query } from '../../store/query.js'
import type { Tables } from '../../store/schema/index.js'
import { all, first, type Transaction } from '../../store/statement.js'
import {
  bodyColumns,
  type DuePlace,
  PENDING_COLUMNS,
  type PendingRow,
  partitionColumn,
  type StoredPending,
  withIntactBodies,
} from './messages.js'
import { type DuePage, pageEncoding } from './messages-packed.js'

export { type DuePage, pageEncoding } from './messages-packed.js'

/**
 * Loads of the dispatcher: pending messages in due order between two places, of all accounts or of one, except those
 * that other loads bring. Each read scans a bounded number of rows, so that a backlog of millions does not block other
 * reads. A node of a cluster scans the messages of all nodes and returns those of its partitions
 * (docs/decisions/partitions.md).
 */

/** Rows scanned in one read. */
export const MAX_SCANNED = 10_000

/** Range of a load. */
export interface DueRange {
  readonly after: DuePlace
  readonly until: DuePlace
  readonly limit: number
  /** Larger bodies, in bytes, are left out; see `messages.body`. */
  readonly largestBody: number
  /** Only messages of these partitions. Absent on a server that is alone: all messages. */
  readonly partitions?: readonly number[] | undefined
}

const HOST = ' host '
const FLOW = ' flow '

/** The lane of a message: its account with its flow-control key, or without a key with its destination host. */
export function laneOf(row: Pick<PendingRow, 'account_id' | 'flow_key' | 'host'>): string {
  return row.flow_key === null ? row.account_id + HOST + row.host : row.account_id + FLOW + row.flow_key
}

/** The host or flow-control key that the messages of a lane share, parsed from its name. */
export function sharedByLane(
  lane: string,
  accountId: string,
): { readonly host: string } | { readonly flowKey: string } {
  const shared = lane.slice(accountId.length)
  return shared.startsWith(HOST) ? { host: shared.slice(HOST.length) } : { flowKey: shared.slice(FLOW.length) }
}

/** The lane as an SQL expression. */
const lane = sql<string>`account_id || case when flow_key is null then ${sql.lit(HOST)} || host else ${sql.lit(FLOW)} || flow_key end`

/** A range of the due order as parameters: after one place, up to another. */
export type Bounds = { nextAt: number; seq: number; untilAt: number; untilSeq: number }
type Page = Bounds & { limit: number; largestBody: number }
type Messages<Row> = SelectQueryBuilder<Tables, 'messages', Row>

/**
 * Pending messages of a range in due order. The state is a literal, as in the conditions of the partial indexes, so that
 * the database uses them.
 */
export const between = <Row>(messages: Messages<Row>, p: Bounds): Messages<Row> =>
  messages
    .where(sql<boolean>`state = 'pending'`)
    .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
    .where(sql<boolean>`(next_at, seq) <= (${p.untilAt}, ${p.untilSeq})`)
    .orderBy('next_at')
    .orderBy('seq')

const wholeRows = ({ db, p, d }: Building<Page>, own: Own) =>
  ofOwn(between(db.selectFrom('messages').select(PENDING_COLUMNS).select(partitionColumn(d)), p), own)
    .select(bodyColumns(p.largestBody))
    .limit(p.limit)

/** The condition that a message is in a partition of this node; `undefined` on a server that is alone. */
type Own = RawBuilder<boolean> | undefined

/** Adds the condition, if there is one. */
export const ofOwn = <Row>(messages: Messages<Row>, own: Own): Messages<Row> => (own ? messages.where(own) : messages)

/** A read of all messages, and the same read of the messages of one node. */
export interface ByNode<Params, Row> {
  readonly ofAll: Query<Params, Row>
  readonly ofOwn: Query<Params & { partitions: readonly number[] }, Row>
}

/** Declares a read for a server that is alone and for a node of a cluster. */
export function byNode<Params extends object, Row>(
  build: (building: Building<Params>, own: Own) => Compilable<Row>,
): ByNode<Params, Row> {
  return {
    ofAll: query<Params, Row>((building) => build(building, undefined)),
    ofOwn: query<Params & { partitions: readonly number[] }, Row>(({ db, p, d }) =>
      build({ db, p: p as unknown as Required<Params>, d }, d.inNumbers('partition', p.partitions)),
    ),
  }
}

/** The rows of a read for this node. */
export function* allOf<Params extends object, Row>(
  { ofAll, ofOwn: own }: ByNode<Params, Row>,
  params: Params,
  partitions: readonly number[] | undefined,
): Transaction<Row[]> {
  return partitions ? yield* all(own, { ...params, partitions }) : yield* all(ofAll, params)
}

const without = (excepted: RawBuilder<boolean>): RawBuilder<boolean> => sql<boolean>`not (${excepted})`

/** Accounts and lanes that a read leaves out. */
interface Excepted {
  exceptAccounts: readonly string[]
  exceptLanes: readonly string[]
}

/** Whether a message is of one of these accounts or lanes. */
export const isOfAccountOrLane = (d: Dialect, p: Excepted): RawBuilder<boolean> =>
  sql<boolean>`${d.inTexts('account_id', p.exceptAccounts)} or ${d.inTexts(lane, p.exceptLanes)}`

/** The place of the n-th message of a range, from the index alone. */
export const placeAhead = query<Bounds & { ahead: number }, DuePlace>(({ db, p }) =>
  between(db.selectFrom('messages').select(['next_at as nextAt', 'seq']), p)
    .offset(p.ahead)
    .limit(1),
)

const placeAheadOfAccount = query<Bounds & { ahead: number; accountId: string }, DuePlace>(({ db, p }) =>
  between(db.selectFrom('messages').select(['next_at as nextAt', 'seq']), p)
    .where('account_id', '=', p.accountId)
    .offset(p.ahead)
    .limit(1),
)

const rowsOfAll = byNode<Page & Excepted, StoredPending>((building, own) =>
  wholeRows(building, own).where(without(isOfAccountOrLane(building.d, building.p))),
)

const rowsOfAccount = byNode<Page & { accountId: string; exceptLanes: readonly string[] }, StoredPending>(
  (building, own) =>
    wholeRows(building, own)
      .where('account_id', '=', building.p.accountId)
      .where(without(building.d.inTexts(lane, building.p.exceptLanes))),
)

const rowsOfHost = byNode<Page & { accountId: string; host: string }, StoredPending>((building, own) =>
  wholeRows(building, own)
    .where('account_id', '=', building.p.accountId)
    .where('host', '=', building.p.host)
    .where('flow_key', 'is', null),
)

const rowsOfFlow = byNode<Page & { accountId: string; flowKey: string }, StoredPending>((building, own) =>
  wholeRows(building, own)
    .where('account_id', '=', building.p.accountId)
    .where('flow_key', '=', building.p.flowKey)
    .where('finished_at', 'is', null),
)

const boundsOf = ({ after, until }: DueRange): Bounds => ({
  nextAt: after.nextAt,
  seq: after.seq,
  untilAt: until.nextAt,
  untilSeq: until.seq,
})

const pageOf = (range: DueRange, until: DuePlace): Page => ({
  ...boundsOf({ ...range, until }),
  limit: range.limit,
  largestBody: range.largestBody,
})

/** Makes a page of rows. It reaches to the last row if there may be more before the bound, otherwise to the bound. */
function paged(rows: readonly StoredPending[], limit: number, bound: DuePlace): DuePage {
  const last = rows.length < limit ? undefined : rows.at(-1)
  return { rows: withIntactBodies(rows), upTo: last ? { nextAt: last.next_at, seq: last.seq } : bound }
}

/**
 * The place of the n-th message of a range, read from the index alone. `ahead` 0 is the first. `undefined` after the last.
 */
export const placeOf = read(
  'messagesDue.placeOf',
  function* (args: { after: DuePlace; until: DuePlace; ahead: number }): Transaction<DuePlace | undefined> {
    const { after, until, ahead } = args
    const bounds = { nextAt: after.nextAt, seq: after.seq, untilAt: until.nextAt, untilSeq: until.seq }
    return yield* first(placeAhead, { ...bounds, ahead })
  },
)

/** Loads messages of all accounts, except some accounts and lanes. */
export const ofAll = read(
  'messagesDue.ofAll',
  function* (
    args: DueRange & { exceptAccounts: readonly string[]; exceptLanes: readonly string[] },
  ): Transaction<DuePage> {
    const { exceptAccounts, exceptLanes } = args
    const bound = (yield* first(placeAhead, { ...boundsOf(args), ahead: MAX_SCANNED })) ?? args.until
    const rows = yield* allOf(rowsOfAll, { ...pageOf(args, bound), exceptAccounts, exceptLanes }, args.partitions)
    return paged(rows, args.limit, bound)
  },
  { encoding: pageEncoding },
)

function* boundOfAccount(args: DueRange & { accountId: string }): Transaction<DuePlace> {
  const { accountId, until } = args
  return (yield* first(placeAheadOfAccount, { ...boundsOf(args), accountId, ahead: MAX_SCANNED })) ?? until
}

/** Loads messages of one account, except some of its lanes. */
export const ofAccount = read(
  'messagesDue.ofAccount',
  function* (args: DueRange & { accountId: string; exceptLanes: readonly string[] }): Transaction<DuePage> {
    const { accountId, exceptLanes } = args
    const bound = yield* boundOfAccount(args)
    const rows = yield* allOf(rowsOfAccount, { ...pageOf(args, bound), accountId, exceptLanes }, args.partitions)
    return paged(rows, args.limit, bound)
  },
  { encoding: pageEncoding },
)

/** Loads messages of one account and destination host without a flow-control key. */
export const ofHost = read(
  'messagesDue.ofHost',
  function* (args: DueRange & { accountId: string; host: string }): Transaction<DuePage> {
    const { accountId, host } = args
    const bound = yield* boundOfAccount(args)
    const rows = yield* allOf(rowsOfHost, { ...pageOf(args, bound), accountId, host }, args.partitions)
    return paged(rows, args.limit, bound)
  },
  { encoding: pageEncoding },
)

/** Loads messages of one account and flow-control key. */
export const ofFlow = read(
  'messagesDue.ofFlow',
  function* (args: DueRange & { accountId: string; flowKey: string }): Transaction<DuePage> {
    const { accountId, flowKey, until } = args
    // An index contains exactly these rows, so the scan needs no bound.
    const rows = yield* allOf(rowsOfFlow, { ...pageOf(args, until), accountId, flowKey }, args.partitions)
    return paged(rows, args.limit, until)
  },
  { encoding: pageEncoding },
)
