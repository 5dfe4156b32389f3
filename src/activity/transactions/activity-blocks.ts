/**
 * Stored blocks of activity. While a process counts, it writes the block repeatedly, each time with all its counts. So a
 * repeated write counts nothing twice, also when the outcome of the first one is unknown.
 */
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'

/** A stored block of an account; `counts` as packed by `packCounts`. */
export interface StoredBlock {
  readonly account_id: string
  readonly start: number
  readonly writer: string
  readonly counts: string
}

type OfBlock = Pick<StoredBlock, 'start' | 'writer'> & { readonly accountIds: readonly string[] }

const removeOld = query<OfBlock>(({ db, p, d }) =>
  db
    .deleteFrom('activity')
    .where(d.inTexts('account_id', p.accountIds))
    .where('start', '=', p.start)
    .where('writer', '=', p.writer),
)

/** Writes the blocks of some accounts, and replaces the versions that this writer stored before. */
export const store = write(
  'activity.store',
  function* ({ blocks }: { blocks: readonly StoredBlock[] }): Transaction<void> {
    for (const [{ start, writer }, own] of byBlock(blocks)) {
      yield* change(removeOld, { start, writer, accountIds: own.map((block) => block.account_id) })
      yield* insertAll('activity', own)
    }
  },
  { turn: 'background' },
)

/** Groups blocks by start and writer. Each group comes with its first block. */
function byBlock(blocks: readonly StoredBlock[]): readonly [StoredBlock, StoredBlock[]][] {
  const groups = new Map<string, [StoredBlock, StoredBlock[]]>()
  for (const block of blocks) {
    const key = `${block.start} ${block.writer}`
    const group = groups.get(key)
    if (group) group[1].push(block)
    else groups.set(key, [block, [block]])
  }
  return [...groups.values()]
}

/** Most blocks that a read returns: enough for a day with many nodes that restarted many times. */
const MAX_BLOCKS = 10_000

const blocksOf = query<{ accountId: string; from: number }, StoredBlock>(({ db, p }) =>
  db
    .selectFrom('activity')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('start', '>=', p.from)
    .orderBy('start', 'desc')
    .limit(MAX_BLOCKS),
)

/** The blocks of an account that began at or after a time, Unix milliseconds. */
export const since = read('activity.since', function* (args: { accountId: string; from: number }): Transaction<
  readonly StoredBlock[]
> {
  return yield* all(blocksOf, args)
})

/** Accounts whose oldest blocks one transaction deletes. */
const ACCOUNTS_PER_BATCH = 500

const oldest = query<object, { start: number; account_id: string }>(({ db }) =>
  db.selectFrom('activity').select(['start', 'account_id']).orderBy('start').orderBy('account_id').limit(1),
)
const placeAhead = query<{ start: number }, { account_id: string }>(({ db, p }) =>
  db
    .selectFrom('activity')
    .select('account_id')
    .where('start', '=', p.start)
    .orderBy('account_id')
    .offset(ACCOUNTS_PER_BATCH)
    .limit(1),
)
const removeOldest = query<{ start: number; upTo: string }>(({ db, p }) =>
  db.deleteFrom('activity').where('start', '=', p.start).where('account_id', '<=', p.upTo),
)
const removeAllOf = query<{ start: number }>(({ db, p }) => db.deleteFrom('activity').where('start', '=', p.start))

/** Deletes a batch of blocks that began before a time; `more`: there may be others. */
export const expire = write(
  'activity.expire',
  function* ({ before }: { before: number }): Transaction<'done' | 'more'> {
    const next = yield* first(oldest, {})
    if (!next || next.start >= before) return 'done'
    const { start } = next
    const upTo = (yield* first(placeAhead, { start }))?.account_id
    yield* upTo === undefined ? change(removeAllOf, { start }) : change(removeOldest, { start, upTo })
    return 'more'
  },
  { turn: 'background' },
)
