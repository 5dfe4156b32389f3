import { sql } from 'kysely'
import { isIntact, reportChanged } from '../../store/checksum.js'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'

/** The payloads of runs and messages, for selectors that look into them. */

/** The table that the numbers of items belong to. */
export type ItemType = 'runs' | 'messages'

interface Items {
  readonly itemType: ItemType
  /** `runs.seq` or `messages.seq`. */
  readonly seqs: readonly number[]
}

/** The size of a payload. */
export interface PayloadSize {
  readonly seq: number
  readonly bytes: number
}

/** A payload; NULL if there is none, or if it has changed since it was written. */
export interface Payload {
  readonly seq: number
  readonly body: Uint8Array | null
}

interface PayloadRow extends Payload {
  readonly crc: number | null
}

type OfItems = Pick<Items, 'seqs'>

const SIZES = {
  runs: query<OfItems, PayloadSize>(({ db, p, d }) =>
    db
      .selectFrom('steps')
      .select(['run_seq as seq', sql<number>`length(body)`.as('bytes')])
      .where(d.inNumbers('run_seq', p.seqs))
      .where('position', '=', sql.lit(0)),
  ),
  messages: query<OfItems, PayloadSize>(({ db, p, d }) =>
    db
      .selectFrom('messages')
      .select(['seq', sql<number>`coalesce(length(body), 0)`.as('bytes')])
      .where(d.inNumbers('seq', p.seqs)),
  ),
} as const

const PAYLOADS = {
  runs: query<OfItems, PayloadRow>(({ db, p, d }) =>
    db
      .selectFrom('steps')
      .select(['run_seq as seq', 'body', 'body_crc as crc'])
      .where(d.inNumbers('run_seq', p.seqs))
      .where('position', '=', sql.lit(0)),
  ),
  messages: query<OfItems, PayloadRow>(({ db, p, d }) =>
    db.selectFrom('messages').select(['seq', 'body', 'body_crc as crc']).where(d.inNumbers('seq', p.seqs)),
  ),
} as const

/** Reads the sizes of payloads, so that a caller reads only as many as fit into memory. */
export const payloadSizes = read(
  'bulk.payloadSizes',
  ({ itemType, seqs }: Items): Transaction<PayloadSize[]> => all(SIZES[itemType], { seqs }),
  { turn: 'background' },
)

/** Reads payloads, in no order. Reports those that have changed. */
export const payloads = read(
  'bulk.payloads',
  function* ({ itemType, seqs }: Items): Transaction<Payload[]> {
    const found: Payload[] = []
    for (const { seq, body, crc } of yield* all(PAYLOADS[itemType], { seqs })) {
      const isWhole = isIntact(body, crc)
      if (!isWhole) yield* reportChanged(itemType === 'runs' ? 'steps' : 'messages', `the payload of number ${seq}`)
      found.push({ seq, body: isWhole ? body : null })
    }
    return found
  },
  { turn: 'background' },
)
