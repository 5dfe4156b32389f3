import type { NewMessage, PublishEntry } from './messages.js'

/**
 * Many messages on their way to the store, in a form that costs little to copy: lists of values instead of objects with
 * their names, and all bodies in one piece, of which each takes its part in order.
 */
export interface PackedEntries {
  readonly rows: readonly PackedRow[]
  readonly bodies: Uint8Array
  /** Of each message, or empty when none has a key. */
  readonly keys: readonly PublishEntry['dedup'][]
  readonly now: number
}

type PackedRow = ReturnType<typeof packRow>

/** Written out, and read in the same order below: going over the names would cost more than what it saves. */
const packRow = (message: NewMessage) =>
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
    message.body?.byteLength ?? null,
  ] as const

const unpackRow = (row: PackedRow, body: Uint8Array | null): NewMessage => ({
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
  body,
})

/** Packs messages. */
export function packEntries(entries: readonly PublishEntry[], now: number): PackedEntries {
  const hasKeys = entries.some((entry) => entry.dedup)
  return {
    rows: entries.map((entry) => packRow(entry.message)),
    bodies: joinBodies(entries.map((entry) => entry.message.body ?? null)),
    keys: hasKeys ? entries.map((entry) => entry.dedup) : [],
    now,
  }
}

/** Bodies as one piece, in order. */
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

/** The bodies of these lengths again, of which `null` is none: views into the piece. */
export function partBodies(whole: Uint8Array, lengths: readonly (number | null)[]): (Uint8Array | null)[] {
  let at = 0
  return lengths.map((length) => {
    if (length === null) return null
    at += length
    return whole.subarray(at - length, at)
  })
}

/** The messages again. */
export function unpackEntries({ rows, bodies, keys }: PackedEntries): PublishEntry[] {
  const parts = partBodies(
    bodies,
    rows.map((row) => row[21]),
  )
  return rows.map((row, index) => ({ message: unpackRow(row, parts[index] ?? null), dedup: keys[index] ?? null }))
}
