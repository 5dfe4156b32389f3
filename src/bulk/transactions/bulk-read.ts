import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { BulkActionState, BulkKindName } from '../../store/schema/bulk.js'
import type { MessageState } from '../../store/schema/messages.js'
import type { FailureState, RunState } from '../../store/schema/runs.js'
import { all, first, type Transaction } from '../../store/statement.js'
import { ACTION_COLUMNS, type BulkActionRow } from './bulk-action.js'
import { type ItemOutcome, outcomeOf, unpackSeqs } from './bulk-pack.js'

/** Reads bulk actions: progress, outcomes page by page, previews, and what a start must continue. */

const actionById = query<{ accountId: string; actionId: string }, BulkActionRow>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select(ACTION_COLUMNS)
    .where('account_id', '=', p.accountId)
    .where('action_id', '=', p.actionId),
)

/** Finds an action of an account by id; `undefined` if there is none. */
export const action = read('bulk.action', function* (args: { accountId: string; actionId: string }): Transaction<
  BulkActionRow | undefined
> {
  return yield* first(actionById, args)
})

/** Arguments for a page of actions. */
export interface ActionsArgs {
  readonly accountId: string
  /** Only actions with a smaller `bulk_actions.seq`. */
  readonly before: number
  readonly limit: number
  readonly states: readonly BulkActionState[]
  readonly kinds: readonly BulkKindName[]
}

const actionsBefore = query<ActionsArgs, BulkActionRow>(({ db, p, d }) =>
  db
    .selectFrom('bulk_actions')
    .select(ACTION_COLUMNS)
    .where('account_id', '=', p.accountId)
    .where('seq', '<', p.before)
    .where(d.inTexts('state', p.states))
    .where(d.inTexts('kind', p.kinds))
    .orderBy('seq', 'desc')
    .limit(p.limit),
)

/** A page of actions of an account by state and kind, newest first. */
export const actions = read('bulk.actions', function* (args: ActionsArgs): Transaction<BulkActionRow[]> {
  return yield* all(actionsBefore, args)
})

const runningActions = query<object, BulkActionRow>(({ db }) =>
  db.selectFrom('bulk_actions').select(ACTION_COLUMNS).where('state', '=', 'running').orderBy('seq'),
)

/** All running actions, oldest first. */
export const running = read('bulk.running', function* (_: object): Transaction<BulkActionRow[]> {
  return yield* all(runningActions, {})
})

/** A chunk with undecided items. */
export interface OpenChunkRow {
  readonly chunk: number
  readonly items: number
}

const undecidedChunks = query<{ actionSeq: number; from: number; limit: number }, OpenChunkRow>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .select(['chunk', 'items'])
    .where('action_seq', '=', p.actionSeq)
    .where('pending', '>', 0)
    .where('chunk', '>=', p.from)
    .orderBy('chunk')
    .limit(p.limit),
)

/** The next chunks with undecided items. */
export const openChunks = read(
  'bulk.openChunks',
  function* (args: { actionSeq: number; from: number; limit: number }): Transaction<OpenChunkRow[]> {
    return yield* all(undecidedChunks, args)
  },
)

const chunkOf = query<{ actionSeq: number; chunk: number }, { seqs: Uint8Array | null }>(({ db, p }) =>
  db.selectFrom('bulk_chunks').select('seqs').where('action_seq', '=', p.actionSeq).where('chunk', '=', p.chunk),
)

/** Numbers of all items of a batch, decided or not. */
export function* batchSeqs(batch: {
  actionSeq: number
  chunk: number
  from: number
  to: number
}): Transaction<number[]> {
  const row = yield* first(chunkOf, batch)
  return unpackSeqs(row?.seqs ?? new Uint8Array()).slice(batch.from, batch.to)
}

/** Outcome of one item, and what the store still knows of it. */
export interface ItemRow {
  readonly outcome: ItemOutcome
  /** Id of the run or message; `undefined` once retention has deleted it. */
  readonly id: string | undefined
  readonly state: RunState | MessageState | undefined
  /** Set while the item is a dead letter. */
  readonly dlqId?: string | undefined
  /** Set for a failed run with a failure function. */
  readonly failureState?: FailureState | undefined
}

/** Position of an item within an action. */
export interface ItemPlace {
  readonly chunk: number
  readonly position: number
}

/** A page of items. `next` is `undefined` after the last. */
export interface ItemPage {
  readonly items: readonly ItemRow[]
  readonly next: ItemPlace | undefined
}

interface ChunkRow {
  readonly chunk: number
  readonly items: number
  readonly seqs: Uint8Array | null
  readonly absent: string | null
  readonly outcomes: Uint8Array | null
}

const chunkFrom = query<{ actionSeq: number; chunk: number }, ChunkRow>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .select(['chunk', 'items', 'seqs', 'absent', 'outcomes'])
    .where('action_seq', '=', p.actionSeq)
    .where('chunk', '>=', p.chunk)
    .orderBy('chunk')
    .limit(1),
)

interface Described {
  readonly seq: number
  readonly id: string
  readonly state: RunState | MessageState
  readonly dlq_id: string | null
  readonly failure_state?: FailureState | null
}

const runsOf = query<{ seqs: readonly number[] }, Described>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id as id', 'state', 'dlq_id', 'failure_state'])
    .where(d.inNumbers('seq', p.seqs)),
)
const messagesOf = query<{ seqs: readonly number[] }, Described>(({ db, p, d }) =>
  db.selectFrom('messages').select(['seq', 'message_id as id', 'state', 'dlq_id']).where(d.inNumbers('seq', p.seqs)),
)

/** An item of a chunk that a page shows. */
interface Shown {
  readonly position: number
  readonly outcome: ItemOutcome
}

function* describeItems(
  row: ChunkRow,
  shown: readonly Shown[],
  itemType: ItemPageArgs['itemType'],
): Transaction<ItemRow[]> {
  if (shown.length === 0) return []
  if (row.absent !== null) {
    const ids: string[] = JSON.parse(row.absent)
    return shown.map(({ position, outcome }) => ({ outcome, id: ids[position], state: undefined }))
  }
  const seqs = unpackSeqs(row.seqs ?? new Uint8Array())
  const shownSeqs = shown.map(({ position }) => seqs[position] ?? 0)
  const rows = yield* all(itemType === 'runs' ? runsOf : messagesOf, { seqs: shownSeqs })
  const found = new Map(rows.map((item) => [item.seq, item]))
  return shown.map(({ outcome }, index) => {
    const item = found.get(shownSeqs[index] ?? 0)
    const dlqId = item?.dlq_id ?? undefined
    return { outcome, id: item?.id, state: item?.state, dlqId, failureState: item?.failure_state ?? undefined }
  })
}

/** Arguments for a page of items. */
export interface ItemPageArgs {
  readonly actionSeq: number
  readonly from: ItemPlace
  readonly limit: number
  /** Only items with one of these outcomes. */
  readonly outcomes: readonly ItemOutcome[]
  /** Type of the items. */
  readonly itemType: 'runs' | 'messages'
  /** Reported outcome of an undecided item: `skipped` in an aborted action. */
  readonly undecided: 'pending' | 'skipped'
}

/**
 * Items in order from a position. A page reads one chunk at most, so it may have fewer than `limit` items, even none,
 * although more follow; `next` is authoritative.
 */
export const items = read('bulk.items', function* (args: ItemPageArgs): Transaction<ItemPage> {
  const row = yield* first(chunkFrom, { actionSeq: args.actionSeq, chunk: args.from.chunk })
  if (!row) return { items: [], next: undefined }
  const start = row.chunk === args.from.chunk ? args.from.position : 0
  const shown: Shown[] = []
  let position = start
  for (; position < row.items && shown.length < args.limit; position++) {
    const stored = outcomeOf(row.outcomes?.[position])
    const outcome = stored === 'pending' ? args.undecided : stored
    if (args.outcomes.includes(outcome)) shown.push({ position, outcome })
  }
  const next = position < row.items ? { chunk: row.chunk, position } : { chunk: row.chunk + 1, position: 0 }
  return { items: yield* describeItems(row, shown, args.itemType), next }
})

/** An item that a dry run shows. */
export interface PreviewRow {
  readonly seq: number
  /** Id of the run or message. */
  readonly id: string
  readonly url: string
  /** Every label between bars, `|a|b|`; empty for none. */
  readonly labels: string
  /** Unix milliseconds. */
  readonly created_at: number
  readonly dlq_id: string | null
}

/** Arguments to describe a few items. */
export interface PreviewArgs {
  readonly itemType: 'runs' | 'messages'
  readonly seqs: readonly number[]
}

const runs = query<PreviewArgs, PreviewRow>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id as id', 'url', 'labels', 'created_at', 'dlq_id'])
    .where(d.inNumbers('seq', p.seqs)),
)
const messages = query<PreviewArgs, PreviewRow>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'message_id as id', 'url', 'labels', 'created_at', 'dlq_id'])
    .where(d.inNumbers('seq', p.seqs)),
)

/** Describes a few items, in the order of `seqs`. */
export const preview = read('bulk.preview', function* (args: PreviewArgs): Transaction<PreviewRow[]> {
  if (args.seqs.length === 0) return []
  const rows = yield* all(args.itemType === 'runs' ? runs : messages, args)
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  return args.seqs.flatMap((seq) => bySeq.get(seq) ?? [])
})
