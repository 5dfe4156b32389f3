import type { PendingRow } from '../transactions/messages.js'
import { laneOf } from '../transactions/messages-due.js'
import type { HeaderMap, MessageConfig, PendingMessage } from '../types.js'

/** Bodies above this size are read from the store when they are sent, so that what waits in memory stays small. */
export const LARGEST_HELD_BODY = 8 * 1024

/** A place in the order in which messages fall due. */
export interface Place {
  readonly nextAt: number
  readonly seq: number
}

/** Whether `a` falls due before `b`. */
export function isBefore(a: Place, b: Place): boolean {
  return a.nextAt < b.nextAt || (a.nextAt === b.nextAt && a.seq < b.seq)
}

/**
 * Where a held message stands.
 *
 *   waiting ─ due ─> limited ─ room under its key ─> ready ─ taken ─> sending ─ outcome committed ─> waiting again,
 *      └────────────────┴───────────────────────────────┴─ dropped ──────┘                           or forgotten
 *
 * Only messages that name a flow-control key are ever `limited`; they may become so again when their turn comes, because
 * the key was paused or narrowed meanwhile.
 */
export type EntryState = 'waiting' | 'limited' | 'ready' | 'sending' | 'dropped'

/** A place under a flow-control key: `kept` until the message's turn comes. */
export interface FlowPlace {
  /** The number of the period that it counts in. */
  readonly period: number
  use: 'kept' | 'sent'
}

/** A message in the engine's memory. */
export interface Entry extends Place {
  readonly message: PendingMessage
  /** How it came into memory. */
  readonly origin: 'offer' | 'load'
  /** The body is in the store only and has to be read before the message is sent. */
  readonly bodyInStore: boolean
  /** How long the body is, in memory or not. */
  readonly bodyBytes: number
  readonly host: string
  /** What it shares its part of the memory with: messages of its account with the same flow-control key, else host. */
  readonly lane: string
  /** Account and flow-control key, joined by a slash; `undefined` without a key. */
  readonly flow: string | undefined
  /** Among the calls that its flow-control key has open; `undefined` when it has none. */
  place: FlowPlace | undefined
  state: EntryState
  /** Ends the request in flight; set while there is one. */
  abort: (() => void) | undefined
}

function parseLabels(labels: string): readonly string[] {
  return labels === '' ? [] : labels.slice(1, -1).split('|')
}

/** Parses JSON that is often the same as the one before: messages of one publisher come in a row. */
function rememberingParser<Value>(): (json: string) => Value {
  let lastJson = ''
  let lastValue: Value
  return (json) => {
    if (json !== lastJson) {
      // The columns are written by this program only.
      lastValue = JSON.parse(json) as Value
      lastJson = json
    }
    return lastValue
  }
}

const parseHeaders = rememberingParser<HeaderMap>()
const parseConfig = rememberingParser<MessageConfig>()

/** The engine's view of a row. */
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
  }
}

/** A body that waits must not keep the bodies in memory that came in one buffer with it. */
function heldBody({ body }: PendingRow): Uint8Array | null {
  return body && body.byteLength < body.buffer.byteLength ? new Uint8Array(body) : body
}

/** Makes an entry of a row, without its body when that is large. */
export function toEntry(row: PendingRow, origin: Entry['origin']): Entry {
  // A body that could not be read ahead is read again when it is needed.
  const bodyInStore = row.body_bytes > LARGEST_HELD_BODY || (row.body === null && row.body_bytes > 0)
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
    place: undefined,
    state: 'waiting',
    abort: undefined,
  }
}
