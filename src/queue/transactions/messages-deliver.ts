import { checksumOf } from '../../store/checksum.js'
import { change, type Transaction, together, write } from '../../store/operation.js'
import { joinBodies, partBodies } from './messages-packed.js'
import { type AttemptRecord, finish } from './messages-settle.js'

/** The delivery of a message from which nothing follows and that nobody waits for: what nearly all attempts come to. */
export interface Delivery {
  readonly seq: number
  /** The attempt that has delivered it; when the message is past it, nothing is changed. */
  readonly retried: number
  readonly at: number
  readonly attempt: Omit<AttemptRecord, 'error'>
}

/** How long it may wait for a commit that somebody else needs anyway. */
const PATIENCE_MS = 5

/** Writes a delivery; the row is kept for the logs. */
function* finishDelivered({ seq, retried, at, attempt }: Delivery): Transaction<void> {
  const { startedAt, status, headers, body } = attempt
  const state = 'delivered'
  const bodyCrc = checksumOf(body)
  yield* change(finish, {
    seq,
    retried,
    state,
    at,
    startedAt,
    status,
    headers,
    body,
    bodyCrc,
    error: null,
    dlqId: null,
  })
}

const packRow = ({ seq, retried, at, attempt }: Delivery) =>
  [seq, retried, at, attempt.startedAt, attempt.status, attempt.headers, attempt.body?.byteLength ?? null] as const

/** Many deliveries in a form that costs little to copy: lists of values, and all bodies in one piece. */
interface PackedDeliveries {
  readonly rows: readonly ReturnType<typeof packRow>[]
  readonly bodies: Uint8Array
}

const deliverPacked = write('messages.deliverPacked', function* (packed: PackedDeliveries): Transaction<void> {
  const { rows, bodies } = packed
  const parts = partBodies(
    bodies,
    rows.map((row) => row[6]),
  )
  for (const [index, [seq, retried, at, startedAt, status, headers]] of rows.entries()) {
    yield* finishDelivered({ seq, retried, at, attempt: { startedAt, status, headers, body: parts[index] ?? null } })
  }
})

function joinDeliveries(all: readonly Delivery[]): PackedDeliveries {
  return {
    rows: all.map(packRow),
    bodies: joinBodies(all.map(({ attempt }) => attempt.body)),
  }
}

/** Writes that a message was delivered. */
export const deliver = write('messages.deliver', finishDelivered, {
  patienceMs: PATIENCE_MS,
  together: together(deliverPacked, { join: joinDeliveries, split: (_result, all) => all.map(() => undefined) }),
})
