import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Dialect } from '../../store/dialect.js'
import { all, first, read, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { Tables } from '../../store/schema/index.js'
import {
  bodyColumns,
  type DuePlace,
  PENDING_COLUMNS,
  type PendingRow,
  type StoredPending,
  withIntactBodies,
} from './messages.js'
import { type DuePage, pageEncoding } from './messages-packed.js'

export { type DuePage, pageEncoding } from './messages-packed.js'

/**
 * Loads of the dispatcher: pending messages in due order between two places, of all accounts or of one, except those
 * that other loads bring. Each read scans a bounded number of rows, so that a backlog of millions does not block other
 * reads.
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
}

const HOST = ' host '
const FLOW = ' flow '

/** The lane of a message. Messages of an account share a lane by flow-control key, else by destination host. */
export function laneOf(row: Pick<PendingRow, 'account_id' | 'flow_key' | 'host'>): string {
  return row.flow_key === null ? row.account_id + HOST + row.host : row.account_id + FLOW + row.flow_key
}

/** What the messages of a lane share, parsed from its name. */
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
 * these are used.
 */
export const between = <Row>(messages: Messages<Row>, p: Bounds): Messages<Row> =>
  messages
    .where(sql<boolean>`state = 'pending'`)
    .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
    .where(sql<boolean>`(next_at, seq) <= (${p.untilAt}, ${p.untilSeq})`)
    .orderBy('next_at')
    .orderBy('seq')

const wholeRows = (messages: Messages<object>, p: Page) =>
  between(messages.select(PENDING_COLUMNS).select(bodyColumns(p.largestBody)), p).limit(p.limit)

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

const rowsOfAll = query<Page & Excepted, StoredPending>(({ db, p, d }) =>
  wholeRows(db.selectFrom('messages'), p).where(without(isOfAccountOrLane(d, p))),
)

const rowsOfAccount = query<Page & { accountId: string; exceptLanes: readonly string[] }, StoredPending>(
  ({ db, p, d }) =>
    wholeRows(db.selectFrom('messages'), p)
      .where('account_id', '=', p.accountId)
      .where(without(d.inTexts(lane, p.exceptLanes))),
)

const rowsOfHost = query<Page & { accountId: string; host: string }, StoredPending>(({ db, p }) =>
  wholeRows(db.selectFrom('messages'), p)
    .where('account_id', '=', p.accountId)
    .where('host', '=', p.host)
    .where('flow_key', 'is', null),
)

const rowsOfFlow = query<Page & { accountId: string; flowKey: string }, StoredPending>(({ db, p }) =>
  wholeRows(db.selectFrom('messages'), p)
    .where('account_id', '=', p.accountId)
    .where('flow_key', '=', p.flowKey)
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

/** Up to which place rows were read: the last row if there may be more before the bound, else the bound. */
function paged(rows: readonly StoredPending[], limit: number, bound: DuePlace): DuePage {
  const last = rows.length < limit ? undefined : rows.at(-1)
  return { rows: withIntactBodies(rows), upTo: last ? { nextAt: last.next_at, seq: last.seq } : bound }
}

/**
 * The place of the n-th message of a range, read from the index alone. `ahead` 0 is the first. `undefined` behind the
 * last.
 */
export const placeOf = read(
  'messagesDue.placeOf',
  function* (args: { after: DuePlace; until: DuePlace; ahead: number }): Transaction<DuePlace | undefined> {
    const { after, until, ahead } = args
    const bounds = { nextAt: after.nextAt, seq: after.seq, untilAt: until.nextAt, untilSeq: until.seq }
    return yield* first(placeAhead, { ...bounds, ahead })
  },
)

/** Of all accounts, except some accounts and lanes. */
export const ofAll = read(
  'messagesDue.ofAll',
  function* (
    args: DueRange & { exceptAccounts: readonly string[]; exceptLanes: readonly string[] },
  ): Transaction<DuePage> {
    const { exceptAccounts, exceptLanes } = args
    const bound = (yield* first(placeAhead, { ...boundsOf(args), ahead: MAX_SCANNED })) ?? args.until
    const rows = yield* all(rowsOfAll, { ...pageOf(args, bound), exceptAccounts, exceptLanes })
    return paged(rows, args.limit, bound)
  },
  { encoding: pageEncoding },
)

function* boundOfAccount(args: DueRange & { accountId: string }): Transaction<DuePlace> {
  const { accountId, until } = args
  return (yield* first(placeAheadOfAccount, { ...boundsOf(args), accountId, ahead: MAX_SCANNED })) ?? until
}

/** Of one account, except some of its lanes. */
export const ofAccount = read(
  'messagesDue.ofAccount',
  function* (args: DueRange & { accountId: string; exceptLanes: readonly string[] }): Transaction<DuePage> {
    const { accountId, exceptLanes } = args
    const bound = yield* boundOfAccount(args)
    return paged(yield* all(rowsOfAccount, { ...pageOf(args, bound), accountId, exceptLanes }), args.limit, bound)
  },
  { encoding: pageEncoding },
)

/** Of one account and destination host, without flow-control key. */
export const ofHost = read(
  'messagesDue.ofHost',
  function* (args: DueRange & { accountId: string; host: string }): Transaction<DuePage> {
    const { accountId, host } = args
    const bound = yield* boundOfAccount(args)
    return paged(yield* all(rowsOfHost, { ...pageOf(args, bound), accountId, host }), args.limit, bound)
  },
  { encoding: pageEncoding },
)

/** Of one account and flow-control key. */
export const ofFlow = read(
  'messagesDue.ofFlow',
  function* (args: DueRange & { accountId: string; flowKey: string }): Transaction<DuePage> {
    const { accountId, flowKey, until } = args
    // An index contains exactly these rows.
    return paged(yield* all(rowsOfFlow, { ...pageOf(args, until), accountId, flowKey }), args.limit, until)
  },
  { encoding: pageEncoding },
)
