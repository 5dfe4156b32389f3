import { sql } from 'kysely'
import { query } from '../../store/query.js'
import { all, first, type Transaction } from '../../store/statement.js'
import { announceCancels, type UpcomingCancel } from '../../workflow/transactions/runs-upcoming.js'
import { outcomeOf, unpackSeqs } from './bulk-pack.js'

/** Finds runs that a running bulk cancel will cancel but has not reached yet. */

type OpenCancel = Omit<UpcomingCancel, 'run_seq' | 'place'> & { readonly seq: number }

/** Maximum number of running actions to search. */
const MAX_ACTIONS = 50

const openCancels = query<{ accountId: string }, OpenCancel>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select(['seq', 'action_id', 'reason', 'rate_per_second', 'created_at', 'paused_at'])
    .where('account_id', '=', p.accountId)
    .where('finished_at', 'is', null)
    .where('kind', '=', 'cancelRuns')
    .orderBy('seq')
    .limit(sql.lit(MAX_ACTIONS)),
)

/** A chunk with undecided items, and the first bytes of its numbers, enough for the first number. */
interface OpenChunk {
  readonly chunk: number
  readonly pending: number
  readonly head: Uint8Array
}

const openChunks = query<{ actionSeq: number }, OpenChunk>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .select(['chunk', 'pending', sql<Uint8Array>`substr(seqs, 1, 8)`.as('head')])
    .where('action_seq', '=', p.actionSeq)
    .where('pending', '>', 0)
    .where('seqs', 'is not', null)
    .orderBy('chunk'),
)

const chunkOf = query<{ actionSeq: number; chunk: number }, { seqs: Uint8Array | null; outcomes: Uint8Array | null }>(
  ({ db, p }) =>
    db
      .selectFrom('bulk_chunks')
      .select(['seqs', 'outcomes'])
      .where('action_seq', '=', p.actionSeq)
      .where('chunk', '=', p.chunk),
)

/** The pending cancels of these runs, with their places. Part of another transaction. */
function* upcomingCancels(accountId: string, runSeqs: readonly number[]): Transaction<UpcomingCancel[]> {
  if (runSeqs.length === 0) return []
  const found: UpcomingCancel[] = []
  for (const action of yield* all(openCancels, { accountId })) found.push(...(yield* upcomingIn(action, runSeqs)))
  return found
}

/** Numbers ascend over all chunks of a set, so each run can be in one chunk only. */
function* upcomingIn(
  { seq: actionSeq, ...action }: OpenCancel,
  runSeqs: readonly number[],
): Transaction<UpcomingCancel[]> {
  const chunks = yield* all(openChunks, { actionSeq })
  const found: UpcomingCancel[] = []
  let before = 0
  for (const [index, { chunk, head, pending }] of chunks.entries()) {
    const next = chunks[index + 1]
    const inChunk = runSeqs.filter((seq) => seq >= firstOf(head) && (!next || seq < firstOf(next.head)))
    const places = inChunk.length > 0 ? yield* placesIn(actionSeq, chunk) : undefined
    for (const run_seq of inChunk) {
      const place = places?.get(run_seq)
      if (place !== undefined) found.push({ ...action, run_seq, place: before + place })
    }
    before += pending
  }
  return found
}

announceCancels(upcomingCancels)

const firstOf = (head: Uint8Array): number => unpackSeqs(head)[0] ?? 0

/** Positions of the undecided items of a chunk, starting at 1. */
function* placesIn(actionSeq: number, chunk: number): Transaction<Map<number, number>> {
  const row = yield* first(chunkOf, { actionSeq, chunk })
  const seqs = row?.seqs ? unpackSeqs(row.seqs) : []
  const open = seqs.filter((_, index) => outcomeOf(row?.outcomes?.[index]) === 'pending')
  return new Map(open.map((seq, index) => [seq, index + 1]))
}
