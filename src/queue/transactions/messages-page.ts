import { crossing } from '../../store/operation.js'
import type { DuePlace, PendingRow } from './messages.js'
import { joinBodies, partBodies } from './messages-packed.js'

/** What a load brought: every message that was asked for up to a place in the order. */
export interface DuePage {
  readonly rows: readonly PendingRow[]
  readonly upTo: DuePlace
}

/** Written out, and read in the same order below: going over the names would cost more than what it saves. */
const packRow = (row: PendingRow) =>
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
    row.body_bytes,
    row.body?.byteLength ?? null,
  ] as const

type PackedRow = ReturnType<typeof packRow>

const unpackRow = (row: PackedRow, body: Uint8Array | null): PendingRow => ({
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
  body_bytes: row[22],
  body,
})

interface PackedPage {
  readonly rows: readonly PackedRow[]
  readonly bodies: Uint8Array
  readonly upTo: DuePlace
}

const packPage = ({ rows, upTo }: DuePage): PackedPage => ({
  rows: rows.map(packRow),
  bodies: joinBodies(rows.map((row) => row.body)),
  upTo,
})

function unpackPage({ rows, bodies, upTo }: PackedPage): DuePage {
  const parts = partBodies(
    bodies,
    rows.map((row) => row[23]),
  )
  return { rows: rows.map((row, index) => unpackRow(row, parts[index] ?? null)), upTo }
}

/** Pages come over as lists of values, with all bodies in one piece: a load of a thousand messages is a large result. */
export const pageCrossing = crossing(packPage, unpackPage)
