import { encodeResult } from '../../store/operation.js'
import type { DuePlace, NewMessage, PendingRow, PublishEntry } from './messages.js'

/**
 * Many messages packed for the store's thread: lists of values instead of objects, and all bodies in one buffer, in
 * order.
 */
export interface PackedEntries {
  readonly rows: readonly PackedMessage[]
  readonly bodies: Uint8Array
  /** One for each message, or empty when no message has a key. */
  readonly keys: readonly PublishEntry['dedup'][]
  /** One for each message, or empty when no message has a rule. */
  readonly rules: readonly PublishEntry['rule'][]
  readonly now: number
}

type PackedMessage = ReturnType<typeof packMessage>

/** Written out, and read in the same order below: a loop over the names would cost more than packing saves. */
const packMessage = (message: NewMessage) =>
  [
    message.message_id,
    message.account_id,
    message.kind,
    message.url,
    message.method,
    message.headers,
    message.config,
    message.max_retries,
    message.next_at,
    message.created_at,
    message.labels,
    message.host,
    message.path,
    message.caller_ip ?? null,
    message.group_key ?? null,
    message.flow_key ?? null,
    message.topic ?? null,
    message.endpoint ?? null,
    message.queue ?? null,
    message.slot_seq ?? null,
    message.schedule_id ?? null,
    message.partition ?? null,
    message.body?.byteLength ?? null,
  ] as const

const unpackMessage = (row: PackedMessage, body: Uint8Array | null): NewMessage => ({
  message_id: row[0],
  account_id: row[1],
  kind: row[2],
  url: row[3],
  method: row[4],
  headers: row[5],
  config: row[6],
  max_retries: row[7],
  next_at: row[8],
  created_at: row[9],
  labels: row[10],
  host: row[11],
  path: row[12],
  caller_ip: row[13],
  group_key: row[14],
  flow_key: row[15],
  topic: row[16],
  endpoint: row[17],
  queue: row[18],
  slot_seq: row[19],
  schedule_id: row[20],
  partition: row[21],
  body,
})

/** Packs messages. */
export function packEntries(entries: readonly PublishEntry[], now: number): PackedEntries {
  const hasKeys = entries.some((entry) => entry.dedup)
  return {
    rows: entries.map((entry) => packMessage(entry.message)),
    bodies: joinBodies(entries.map((entry) => entry.message.body ?? null)),
    keys: hasKeys ? entries.map((entry) => entry.dedup) : [],
    rules: entries.some((entry) => entry.rule) ? entries.map((entry) => entry.rule) : [],
    now,
  }
}

/** Joins bodies into one buffer, in order. */
export function joinBodies(bodies: readonly (Uint8Array | null)[]): Uint8Array {
  const whole = new Uint8Array(bodies.reduce((sum, body) => sum + (body?.byteLength ?? 0), 0))
  let at = 0
  for (const body of bodies) {
    if (!body) continue
    whole.set(body, at)
    at += body.byteLength
  }
  return whole
}

/** Splits a buffer into bodies of these lengths, as views. `null` means no body. */
export function splitBodies(whole: Uint8Array, lengths: readonly (number | null)[]): (Uint8Array | null)[] {
  let at = 0
  return lengths.map((length) => {
    if (length === null) return null
    at += length
    return whole.subarray(at - length, at)
  })
}

/** Unpacks messages. */
export function unpackEntries({ rows, bodies, keys, rules }: PackedEntries): PublishEntry[] {
  const split = splitBodies(
    bodies,
    rows.map((row) => row[22]),
  )
  return rows.map((row, index) => {
    const entry = { message: unpackMessage(row, split[index] ?? null), dedup: keys[index] ?? null }
    return rules.length === 0 ? entry : { ...entry, rule: rules[index] }
  })
}

/** Result of a load: every message of its range up to a place. */
export interface DuePage {
  readonly rows: readonly PendingRow[]
  readonly upTo: DuePlace
}

/** Written out, and read in the same order below: a loop over the names would cost more than packing saves. */
const packPendingRow = (row: PendingRow) =>
  [
    row.seq,
    row.message_id,
    row.account_id,
    row.kind,
    row.group_key,
    row.url,
    row.method,
    row.headers,
    row.config,
    row.max_retries,
    row.retried,
    row.next_at,
    row.created_at,
    row.labels,
    row.flow_key,
    row.caller_ip,
    row.host,
    row.topic,
    row.endpoint,
    row.queue,
    row.slot_seq,
    row.schedule_id,
    row.partition,
    row.body_bytes,
    row.body?.byteLength ?? null,
  ] as const

type PackedPendingRow = ReturnType<typeof packPendingRow>

const unpackPendingRow = (row: PackedPendingRow, body: Uint8Array | null): PendingRow => ({
  seq: row[0],
  message_id: row[1],
  account_id: row[2],
  kind: row[3],
  group_key: row[4],
  url: row[5],
  method: row[6],
  headers: row[7],
  config: row[8],
  max_retries: row[9],
  retried: row[10],
  next_at: row[11],
  created_at: row[12],
  labels: row[13],
  flow_key: row[14],
  caller_ip: row[15],
  host: row[16],
  topic: row[17],
  endpoint: row[18],
  queue: row[19],
  slot_seq: row[20],
  schedule_id: row[21],
  partition: row[22],
  body_bytes: row[23],
  body,
})

interface PackedPage {
  readonly rows: readonly PackedPendingRow[]
  readonly bodies: Uint8Array
  readonly upTo: DuePlace
}

const packPage = ({ rows, upTo }: DuePage): PackedPage => ({
  rows: rows.map(packPendingRow),
  bodies: joinBodies(rows.map((row) => row.body)),
  upTo,
})

function unpackPage({ rows, bodies, upTo }: PackedPage): DuePage {
  const split = splitBodies(
    bodies,
    rows.map((row) => row[24]),
  )
  return { rows: rows.map((row, index) => unpackPendingRow(row, split[index] ?? null)), upTo }
}

/** Pages cross threads as lists of values, with all bodies in one buffer: a load of a thousand messages is large. */
export const pageEncoding = encodeResult(packPage, unpackPage)
