import { sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, only, type Transaction } from '../../store/statement.js'
import { ACTION_COLUMNS, type BulkActionRow } from './bulk-action.js'
import { NO_ACCOUNT } from './bulk-draft.js'
import { outcomeByte, unpackSeqs } from './bulk-pack.js'

/**
 * Which node processes an action. Its owner is in the row: a batch changes nothing unless its node is the owner at that
 * moment, under the lock of its chunk. So a node that was declared dead and wakes up cannot decide anything any more.
 */

interface Ended {
  /** Also actions that ended after this, Unix milliseconds. */
  readonly endedAfter: number
}

const someOwners = query<Ended, { owner: number }>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select('owner')
    .distinct()
    .where((eb) =>
      eb.or([
        eb('state', '=', sql.lit('running')),
        eb('account_id', '=', sql.lit(NO_ACCOUNT)),
        eb('finished_at', '>', p.endedAfter),
      ]),
    ),
)

/** The owners of drafts, of running actions, and of actions that have just ended. */
export const owners = read('bulk.owners', function* (args: Ended): Transaction<number[]> {
  return (yield* all(someOwners, args)).map(({ owner }) => owner)
})

/** The nodes whose actions are taken over, and the node that takes them over. */
export interface TakeOver extends Ended {
  readonly from: readonly number[]
  readonly owner: number
  /** Younger drafts are left alone. */
  readonly draftsBefore: number
}

const removeDrafts = query<TakeOver>(({ db, p, d }) =>
  db
    .deleteFrom('bulk_actions')
    .where('account_id', '=', sql.lit(NO_ACCOUNT))
    .where(d.inNumbers('owner', p.from))
    .where('created_at', '<', p.draftsBefore),
)
/**
 * Waits for the batches in flight of the actions to take over, and keeps others from starting until the commit: each batch
 * locks its chunk first, and the action only at its end.
 */
const lockOpenChunks = query<TakeOver, { chunks: number }>(({ db, p, d }) => {
  const theirs = db
    .selectFrom('bulk_actions')
    .select('seq')
    .where(d.inNumbers('owner', p.from))
    .where('account_id', '<>', sql.lit(NO_ACCOUNT))
    .where('state', '=', sql.lit('running'))
  const open = db
    .selectFrom('bulk_chunks')
    .select('chunk')
    .where('action_seq', 'in', theirs)
    .where('pending', '>', 0)
    .orderBy('action_seq')
    .orderBy('chunk')
  return db.selectFrom(d.forUpdate(open).as('open')).select((eb) => eb.fn.countAll<number>().as('chunks'))
})
const lockTheirs = query<TakeOver, { seq: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('bulk_actions')
      .select('seq')
      .where(d.inNumbers('owner', p.from))
      .where('account_id', '<>', sql.lit(NO_ACCOUNT))
      .where((eb) => eb.or([eb('state', '=', sql.lit('running')), eb('finished_at', '>', p.endedAfter)]))
      .orderBy('seq'),
  ),
)
const setOwner = query<{ seqs: readonly number[]; owner: number }, BulkActionRow>(({ db, p, d }) =>
  db.updateTable('bulk_actions').set({ owner: p.owner }).where(d.inNumbers('seq', p.seqs)).returning(ACTION_COLUMNS),
)

/**
 * Takes over the actions of nodes that can no longer act, and deletes their drafts. If two nodes try, the second one gets
 * nothing.
 */
export const takeOver = write('bulk.takeOver', function* (args: TakeOver): Transaction<BulkActionRow[]> {
  yield* change(removeDrafts, args)
  yield* only(lockOpenChunks, args)
  const seqs = (yield* all(lockTheirs, args)).map(({ seq }) => seq)
  if (seqs.length === 0) return []
  const rows = yield* all(setOwner, { seqs, owner: args.owner })
  return rows.sort((one, other) => one.seq - other.seq)
})

interface Place {
  readonly actionSeq: number
  readonly chunk: number
}

interface DecidedRow {
  readonly chunk: number
  readonly seqs: Uint8Array | null
  readonly outcomes: Uint8Array | null
}

const decidedFrom = query<Place, DecidedRow>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .select(['chunk', 'seqs', 'outcomes'])
    .where('action_seq', '=', p.actionSeq)
    .where('chunk', '>=', p.chunk)
    .where('outcomes', 'is not', null)
    .where('seqs', 'is not', null)
    .orderBy('chunk')
    .limit(1),
)

const SUCCEEDED = outcomeByte('succeeded')

/** Items that an action was applied to, from its next chunk that has any outcome; `undefined` after the last chunk. */
export const succeededOf = read('bulk.succeededOf', function* (args: Place): Transaction<
  { chunk: number; seqs: number[] } | undefined
> {
  const row = yield* first(decidedFrom, args)
  if (!row) return undefined
  const { chunk, outcomes } = row
  const seqs = unpackSeqs(row.seqs ?? new Uint8Array())
  return { chunk, seqs: seqs.filter((_, index) => outcomes?.[index] === SUCCEEDED) }
})
