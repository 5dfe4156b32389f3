import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import { unpackSeqs } from './bulk-pack.js'

/** Reads which items are in the sets of actions, page by page. */

/** Chunks of sets that are read in one transaction. */
const CHUNKS_PER_PAGE = 16

/** A chunk of the set of an action. */
export interface ChunkPlace {
  readonly action_seq: number
  readonly chunk: number
}

interface ChunkItems extends ChunkPlace {
  readonly seqs: Uint8Array | null
}

/** Items of actions. */
export interface ItemsPage {
  /** `runs.seq` or `messages.seq`. */
  readonly seqs: readonly number[]
  /** The next page begins after this chunk; `undefined` at the end. */
  readonly last: ChunkPlace | undefined
}

const pageOf = (chunks: readonly ChunkItems[]): ItemsPage => ({
  seqs: chunks.flatMap(({ seqs }) => (seqs ? unpackSeqs(seqs) : [])),
  last: chunks.length < CHUNKS_PER_PAGE ? undefined : chunks.at(-1),
})

interface UndosArgs {
  readonly accountId: string
  /** Only undos that are stored after this action. */
  readonly seq: number
  /** Only undos that began before, Unix milliseconds. */
  readonly before: number
}

const chunksOfUndos = query<UndosArgs & ChunkPlace & { limit: number }, ChunkItems>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .innerJoin('bulk_actions', 'bulk_actions.seq', 'bulk_chunks.action_seq')
    .select(['action_seq', 'chunk', 'seqs'])
    .where('account_id', '=', p.accountId)
    .where('seq', '>', p.seq)
    .where('kind', '=', sql.lit('undoCancelMessages'))
    .where('created_at', '<', p.before)
    .where('action_seq', '>=', p.action_seq)
    .where(({ eb, or }) => or([eb('action_seq', '>', p.action_seq), eb('chunk', '>', p.chunk)]))
    .orderBy('action_seq')
    .orderBy('chunk')
    .limit(p.limit),
)

/** Messages that undos may have brought back. */
export const itemsOfUndos = read(
  'bulk.itemsOfUndos',
  function* ({ after, ...args }: UndosArgs & { after: ChunkPlace }): Transaction<ItemsPage> {
    return pageOf(yield* all(chunksOfUndos, { ...args, ...after, limit: CHUNKS_PER_PAGE }))
  },
  { turn: 'background' },
)

const chunksOfAction = query<ChunkPlace & { limit: number }, ChunkItems>(({ db, p }) =>
  db
    .selectFrom('bulk_chunks')
    .select(['action_seq', 'chunk', 'seqs'])
    .where('action_seq', '=', p.action_seq)
    .where('chunk', '>', p.chunk)
    .orderBy('chunk')
    .limit(p.limit),
)

/** All items of an action. */
export const itemsOfAction = read(
  'bulk.itemsOfAction',
  function* ({ after }: { after: ChunkPlace }): Transaction<ItemsPage> {
    return pageOf(yield* all(chunksOfAction, { ...after, limit: CHUNKS_PER_PAGE }))
  },
  { turn: 'background' },
)
