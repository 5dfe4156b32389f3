import { type AliasedRawBuilder, type Insertable, type Selectable, sql } from 'kysely'
import { partitionOfGroup, partitionOfKey } from '../../cluster/key-partition.js'
import { checksumOf, intact, isIntact } from '../../store/checksum.js'
import type { Dialect } from '../../store/dialect.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessagesTable } from '../../store/schema/messages.js'
import {
  type Ask,
  all,
  askChange,
  askNumbers,
  change,
  type InsertRow,
  insertNumbered,
  type Transaction,
} from '../../store/statement.js'
import type { KeyRule } from '../key-rule.js'
import { storeFlowKeys } from './flow-keys.js'

/** A message before the store has numbered it. New messages are pending, or held in a queue, and have no attempt. */
export type NewMessage = Omit<
  Insertable<MessagesTable>,
  | 'state'
  | 'retried'
  | 'finished_at'
  | 'started_at'
  | 'response_status'
  | 'response_headers'
  | 'response_body'
  | 'body_crc'
  | 'response_crc'
  | 'error'
  | 'dlq_id'
  | 'partition'
> & {
  /** Absent: see `partitionOf`. */
  readonly partition?: number | null
}

/** A message to publish. */
export interface PublishEntry {
  readonly message: NewMessage
  /** Entries of an account with the same key count as one message until the key expires. */
  readonly dedup: { readonly key: string; readonly expiresAt: number } | null
  /** The rule with its complete key: including the namespace of a token, and the URL of an endpoint of a URL group. */
  readonly rule?: KeyRule | undefined
}

/** A message as it is stored. */
export type MessageRow = Selectable<MessagesTable>

/** The columns of a pending message that the dispatcher needs. */
export interface PendingRow
  extends Pick<
    MessageRow,
    | 'seq'
    | 'message_id'
    | 'account_id'
    | 'kind'
    | 'group_key'
    | 'url'
    | 'method'
    | 'headers'
    | 'config'
    | 'max_retries'
    | 'retried'
    | 'next_at'
    | 'created_at'
    | 'labels'
    | 'flow_key'
    | 'caller_ip'
    | 'host'
    | 'topic'
    | 'endpoint'
    | 'queue'
    | 'slot_seq'
    | 'schedule_id'
    | 'partition'
  > {
  /** NULL also when the body is too large to be loaded ahead; see `body_bytes`. */
  readonly body: Uint8Array | null
  readonly body_bytes: number
  /**
   * The message waits for its turn in a queue. It is offered only because of the
   * limits that it sets for its flow-control key.
   */
  readonly held?: true
}

/** Larger bodies are not passed to the dispatcher, which reads them from the store when it sends them. */
export const MAX_ROW_BODY_BYTES = 8 * 1024

/** The row for the dispatcher, without a large body. */
export const withoutLargeBody = (row: PendingRow): PendingRow =>
  row.body_bytes > MAX_ROW_BODY_BYTES ? { ...row, body: null } : row

/** The first state of a message. A message of a queue waits for its turn; see `acceptMessages`. */
const firstState = (message: NewMessage): 'held' | 'pending' => (message.queue ? 'held' : 'pending')

/**
 * The partition of a new message. Messages of a flow-control key have the partition of the key, so that one node counts
 * its use. Other messages have the partition that they were drafted with, otherwise that of their group, so that one
 * node caches the state of the group.
 */
function partitionOf(message: NewMessage): number {
  if (message.flow_key) return partitionOfKey(message.account_id, message.flow_key)
  return message.partition ?? partitionOfGroup(message.group_key ?? 0)
}

/** The columns of a new message. Written out, because spreading an object costs ten times as much. */
export function toRow(message: NewMessage): InsertRow<'messages'> {
  return {
    message_id: message.message_id,
    account_id: message.account_id,
    kind: message.kind,
    group_key: message.group_key ?? null,
    state: firstState(message),
    url: message.url,
    method: message.method,
    headers: message.headers,
    body: message.body ?? null,
    body_crc: checksumOf(message.body),
    config: message.config,
    max_retries: message.max_retries,
    retried: 0,
    next_at: message.next_at,
    created_at: message.created_at,
    labels: message.labels,
    flow_key: message.flow_key ?? null,
    caller_ip: message.caller_ip ?? null,
    host: message.host,
    path: message.path,
    topic: message.topic ?? null,
    endpoint: message.endpoint ?? null,
    queue: message.queue ?? null,
    slot_seq: message.slot_seq ?? null,
    schedule_id: message.schedule_id ?? null,
    partition: partitionOf(message),
  }
}

/** Columns in which the messages of one batch usually differ. */
const OWN_COLUMNS = ['message_id', 'body', 'body_crc'] as const

/**
 * Stores new messages within another transaction. Returns their numbers, in order. Messages of queues are only stored;
 * `acceptMessages` also gives them turns.
 */
export function* insertMessages(messages: readonly NewMessage[]): Transaction<number[]> {
  if (messages.length === 0) return []
  yield* storeFlowKeys(messages)
  return yield* insertNumbered('messages', messages.map(toRow), 'message_id', OWN_COLUMNS)
}

/**
 * Asks to store messages, at least one, whose flow-control keys are stored already.
 * Returns their numbers. See `insertMessages`.
 */
export const askToInsert = (messages: readonly NewMessage[]): Ask<number[]> =>
  askNumbers('messages', messages.map(toRow), 'message_id', OWN_COLUMNS)

/** The row of a message that was just stored under this number, for the dispatcher. */
export function toPendingRow(message: NewMessage, seq: number): PendingRow {
  const body = message.body ?? null
  // Written out, as above.
  return {
    seq,
    message_id: message.message_id,
    account_id: message.account_id,
    kind: message.kind,
    group_key: message.group_key ?? null,
    url: message.url,
    method: message.method,
    headers: message.headers,
    config: message.config,
    max_retries: message.max_retries,
    retried: 0,
    next_at: message.next_at,
    created_at: message.created_at,
    labels: message.labels,
    flow_key: message.flow_key ?? null,
    caller_ip: message.caller_ip ?? null,
    host: message.host,
    topic: message.topic ?? null,
    endpoint: message.endpoint ?? null,
    queue: message.queue ?? null,
    slot_seq: message.slot_seq ?? null,
    schedule_id: message.schedule_id ?? null,
    partition: partitionOf(message),
    body,
    body_bytes: body?.byteLength ?? 0,
  }
}

/** The rows of messages that were just stored under these numbers, for the dispatcher. */
export function toPendingRows(messages: readonly NewMessage[], seqs: readonly number[]): PendingRow[] {
  return messages.map((message, index) => toPendingRow(message, seqs[index] ?? Number.NaN))
}

/**
 * Whether a message is pending, for queries that find messages by other columns. The expression keeps
 * PostgreSQL from using the indexes of pending messages: with statistics from a time when few were pending, it
 * would search all of them for each message.
 */
export const isPending = sql<boolean>`state || '' = 'pending'`

const deleteGroups = query<{ groups: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('messages').where(d.inNumbers('group_key', p.groups)).where(isPending),
)

const deleteManyGroups = query<{ groups: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('messages').where(d.inSharedNumbers('group_key', p.groups)).where(isPending),
)

/** Deletes the pending messages of these groups within another transaction. Returns how many. */
export function* deletePendingOfGroups(groups: readonly number[]): Transaction<number> {
  return groups.length > 0 ? yield* change(deleteGroups, { groups }) : 0
}

/** Asks to delete the pending messages of many groups, whose list is shared with the statements before. */
export function askDeletePendingOfGroups(groups: readonly number[]): Ask<number> {
  return askChange(deleteManyGroups, { groups })
}

/** A place in due order. */
export interface DuePlace {
  readonly nextAt: number
  readonly seq: number
}

/** The columns of a `PendingRow` except the body and the partition; see `partitionColumn`. */
export const PENDING_COLUMNS = [
  'seq',
  'message_id',
  'account_id',
  'kind',
  'group_key',
  'url',
  'method',
  'headers',
  'config',
  'max_retries',
  'retried',
  'next_at',
  'created_at',
  'labels',
  'flow_key',
  'caller_ip',
  'host',
  'topic',
  'endpoint',
  'queue',
  'slot_seq',
  'schedule_id',
] as const

/** The partition of a pending message; select it with `PENDING_COLUMNS`. */
export const partitionColumn = (d: Dialect): AliasedRawBuilder<number, 'partition'> => d.partition.as('partition')

/** Length of the body. */
const bodyBytes = sql<number>`coalesce(length(body), 0)`.as('body_bytes')

/** The body if it has at most `most` bytes; larger ones are only measured. */
function bodyUpTo(most: number): AliasedRawBuilder<Uint8Array | null, 'body'> {
  return sql<Uint8Array | null>`case when length(body) <= ${most} then body end`.as('body')
}

/** A row with the checksum of the body. */
export type StoredPending = PendingRow & Pick<MessageRow, 'body_crc'>

/** The checksum is only read with the body: SQLite stores it after the body, and would walk all pages of a large body. */
const checksumUpTo = (most: number) =>
  sql<number | null>`case when length(body) <= ${most} then body_crc end`.as('body_crc')

/** The body columns to read together with `PENDING_COLUMNS`. */
export const bodyColumns = (most: number) => [bodyBytes, bodyUpTo(most), checksumUpTo(most)] as const

/**
 * Removes bodies whose checksum does not match. Such a body then counts as too large to be passed along, and the later
 * read from the store reports the damage.
 */
export function withIntactBodies(rows: readonly StoredPending[]): PendingRow[] {
  return rows.map((row) => {
    const isLeftOut = row.body === null && row.body_bytes > 0
    if (isLeftOut || isIntact(row.body, row.body_crc)) return row
    return { ...row, body: null, body_bytes: Math.max(row.body_bytes, 1) }
  })
}

const pendingInOrder = query<
  { nextAt: number; seq: number; until: number; limit: number; largestBody: number },
  StoredPending
>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(PENDING_COLUMNS)
    .select(partitionColumn(d))
    .select(bodyColumns(p.largestBody))
    .where(sql<boolean>`state = 'pending'`)
    .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
    .where('next_at', '<=', p.until)
    .orderBy('next_at')
    .orderBy('seq')
    .limit(p.limit),
)

/**
 * Pending messages in due order, after a place and up to a time. Bodies larger than `largestBody` bytes are left out;
 * see `messages.body`.
 */
export const pending = read(
  'messages.pending',
  function* (args: { after: DuePlace; until: number; limit: number; largestBody: number }): Transaction<PendingRow[]> {
    const { after, until, limit, largestBody } = args
    return withIntactBodies(yield* all(pendingInOrder, { ...after, until, limit, largestBody }))
  },
)

const bodyOf = query<{ seq: number }, Pick<MessageRow, 'body' | 'body_crc' | 'message_id'>>(({ db, p }) =>
  db.selectFrom('messages').select(['body', 'body_crc', 'message_id']).where('seq', '=', p.seq).where(isPending),
)

/**
 * The body of a pending message; `undefined` when the message is gone.
 * @throws HomeportError `store_damaged` when its checksum does not match.
 */
export const body = read(
  'messages.body',
  function* (args: { seq: number }): Transaction<{ body: Uint8Array | null } | undefined> {
    const row = (yield* all(bodyOf, args))[0]
    return row && { body: intact(row.body, row.body_crc, 'messages', () => `the body of ${row.message_id}`) }
  },
  { isSingle: () => true },
)

/** Stores messages on their own. Returns their numbers, in order. */
export const insert = write('messages.insert', insertMessages)
