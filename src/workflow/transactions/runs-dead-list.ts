import { sql } from 'kysely'
import { firstFitting, inOrderOf } from '../../queue/transactions/messages-sizes.js'
import { isIntact, reportChanged } from '../../store/checksum.js'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import { type DeadRunPage, type DeadRunSelector, selectPlaces } from './runs-dead.js'
import type { RunRow } from './runs-rows.js'

/** A dead letter with the payload and settings of its trigger. */
export interface DeadLetterRow extends RunRow {
  readonly payload: Uint8Array
  /** The settings of the trigger, JSON of `ElementMeta`. */
  readonly meta: string | null
}

/** A page of dead letters with their payloads. */
export interface DeadLetterRows extends DeadRunPage {
  readonly runs: readonly DeadLetterRow[]
}

interface OfRuns {
  readonly seqs: readonly number[]
}

const sizes = query<OfRuns, { seq: number; bytes: number }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .innerJoin('steps', (join) => join.onRef('run_seq', '=', 'seq').on('position', '=', sql.lit(0)))
    .select(['seq', sql<number>`coalesce(octet_length(failure), 0) + octet_length(body)`.as('bytes')])
    .where(d.inNumbers('seq', p.seqs)),
)
const letters = query<OfRuns, DeadLetterRow & { payload_crc: number | null }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .innerJoin('steps', (join) => join.onRef('run_seq', '=', 'seq').on('position', '=', sql.lit(0)))
    .selectAll('runs')
    .select(['steps.body as payload', 'steps.body_crc as payload_crc', 'steps.meta'])
    .where(d.inNumbers('seq', p.seqs)),
)

/** Reports damaged payloads and leaves them out, so that the others stay readable. */
function* listedLetters(
  rows: readonly (DeadLetterRow & { payload_crc: number | null })[],
): Transaction<DeadLetterRow[]> {
  const listed: DeadLetterRow[] = []
  for (const { payload_crc, ...letter } of rows) {
    const isWhole = isIntact(letter.payload, payload_crc)
    if (!isWhole) yield* reportChanged('steps', `the payload of ${letter.run_id}`)
    listed.push(isWhole ? letter : { ...letter, payload: new Uint8Array() })
  }
  return listed
}

/** Reads a page of dead letters with their payloads: as many as fit into a page, but at least one. */
export const listDead = read('runs.listDead', function* (selector: DeadRunSelector): Transaction<DeadLetterRows> {
  const { places, next } = yield* selectPlaces(selector)
  const found = inOrderOf(places, yield* all(sizes, { seqs: places.map(({ seq }) => seq) }))
  const fitting = firstFitting(found)
  const rows = yield* listedLetters(yield* all(letters, { seqs: fitting.map(({ seq }) => seq) }))
  const runs = inOrderOf(fitting, rows)
  const last = fitting.length < found.length ? runs.at(-1) : undefined
  const after = last ? { at: last.died_at ?? 0, seq: last.seq } : next
  return { runs, ...(after && { next: after }) }
})
