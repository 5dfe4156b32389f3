import type { PendingRow } from '../transactions/messages.js'
import { laneOf } from '../transactions/messages-due.js'
import type { HeaderMap, MessageConfig, PendingMessage } from '../types.js'

/** Larger bodies stay in the store until they are sent, so that waiting messages need little memory. */
export const MAX_HELD_BODY_BYTES = 8 * 1024

/** Place in the due order of messages. */
export interface Place {
  readonly nextAt: number
  readonly seq: number
}

/** Whether `a` is due before `b`. */
export function isBefore(a: Place, b: Place): boolean {
  return a.nextAt < b.nextAt || (a.nextAt === b.nextAt && a.seq < b.seq)
}

/**
 * State of a held message.
 *
 *   waiting ─ due ─> limited ─ place under its key ─> ready ─ taken ─> sending ─ outcome committed ─> waiting again,
 *      └────────────────┴────────────────────────────────┴─ dropped ──────┘                           or forgotten
 *
 * Only messages with a flow-control key become `limited`. A `ready` message may become `limited` again at its turn, if
 * its key was paused or its limits lowered meanwhile.
 */
export type EntryState = 'waiting' | 'limited' | 'ready' | 'sending' | 'dropped'

/** A message's place under its flow-control key. `kept`: reserved until the message is sent. */
export interface FlowPlace {
  /** Number of the period that it counts in. */
  readonly period: number
  use: 'kept' | 'sent'
}

/** A message in the dispatcher's memory. */
export interface Entry extends Place {
  readonly message: PendingMessage
  /** How it came into memory. */
  readonly origin: 'offer' | 'load'
  /** The body is only in the store and is read before the message is sent. */
  readonly bodyInStore: boolean
  /** Length of the body, bytes, in memory or not. A claim raises it if the request needs more memory. */
  bodyBytes: number
  readonly host: string
  /**
   * The messages that it shares memory with: those of its account with the same
   * flow-control key, otherwise to the same host.
   */
  readonly lane: string
  /** `<account>/<flow-control key>`; `undefined` without a key. */
  readonly flow: string | undefined
  readonly partition: number
  /** Its place under the flow-control key; `undefined` while it has none. */
  place: FlowPlace | undefined
  /** Its rank among other due messages; the smallest goes first. Set when the message becomes due. */
  rank: number
  /** When it joined the line that it is in, Unix milliseconds; 0 before it is due. */
  inLineSince: number
  /** How long it has waited for a place under its flow-control key, milliseconds. */
  heldMs: number
  /** How long it has waited for its turn among all messages that may be sent; set when it is taken. */
  lineMs: number
  state: EntryState
  /** Aborts the request; set while one is in flight. */
  abort: (() => void) | undefined
  /** Whether its request is over and its outcome is being stored. */
  isAnswered: boolean
}

function parseLabels(labels: string): readonly string[] {
  return labels === '' ? [] : labels.slice(1, -1).split('|')
}

/** Parses JSON and keeps the last result: messages of one publisher come in a row and repeat themselves. */
function rememberingParser<Value>(): (json: string) => Value {
  let lastJson = ''
  let lastValue: Value
  return (json) => {
    if (json !== lastJson) {
      // This program wrote and validated the column.
      lastValue = JSON.parse(json) as Value
      lastJson = json
    }
    return lastValue
  }
}

const parseHeaders = rememberingParser<HeaderMap>()
const parseConfig = rememberingParser<MessageConfig>()

/** The row as the dispatcher uses it. */
export function toPending(row: PendingRow, body = row.body): PendingMessage {
  return {
    seq: row.seq,
    messageId: row.message_id,
    accountId: row.account_id,
    kind: row.kind,
    groupKey: row.group_key ?? undefined,
    url: row.url,
    method: row.method,
    headers: parseHeaders(row.headers),
    config: parseConfig(row.config),
    body: body ?? undefined,
    maxRetries: row.max_retries,
    retried: row.retried,
    nextAt: row.next_at,
    createdAt: row.created_at,
    callerIp: row.caller_ip ?? undefined,
    labels: parseLabels(row.labels),
    flowKey: row.flow_key ?? undefined,
    topic: row.topic ?? undefined,
    endpoint: row.endpoint ?? undefined,
    queue: row.queue ?? undefined,
    turn: row.queue === null ? (row.slot_seq ?? undefined) : row.seq,
    scheduleId: row.schedule_id ?? undefined,
    partition: row.partition,
  }
}

/** Copies a body that shares a larger buffer, so that a waiting message does not keep that buffer in memory. */
function heldBody({ body }: PendingRow): Uint8Array | null {
  return body && body.byteLength < body.buffer.byteLength ? new Uint8Array(body) : body
}

/** Makes an entry of a row. A large body stays in the store. */
export function toEntry(row: PendingRow, origin: Entry['origin']): Entry {
  // A body that could not be read ahead is read again when the message is sent.
  const bodyInStore = row.body_bytes > MAX_HELD_BODY_BYTES || (row.body === null && row.body_bytes > 0)
  const message = toPending(row, bodyInStore ? null : heldBody(row))
  return {
    message,
    origin,
    bodyInStore,
    bodyBytes: row.body_bytes,
    host: row.host,
    lane: laneOf(row),
    flow: row.flow_key === null ? undefined : `${row.account_id}/${row.flow_key}`,
    nextAt: row.next_at,
    seq: row.seq,
    partition: row.partition,
    ...UNDUE,
  }
}

/** Makes an entry of a loaded row; `undefined` if the row is damaged, so that its columns are no longer valid JSON. */
export function loadedEntry(row: PendingRow): Entry | undefined {
  try {
    return toEntry(row, 'load')
  } catch {
    return undefined
  }
}

/** The state of an entry before it is due. */
export const UNDUE = {
  place: undefined,
  rank: 0,
  inLineSince: 0,
  heldMs: 0,
  lineMs: 0,
  state: 'waiting',
  abort: undefined,
  isAnswered: false,
} as const satisfies Partial<Entry>
