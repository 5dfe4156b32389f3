import { sql } from 'kysely'
import { partitionOfKey } from '../../cluster/key-partition.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, type Transaction } from '../../store/statement.js'

/** A place in the order of the messages with a flow-control key that have not ended. */
export interface KeyedPlace {
  readonly accountId: string
  readonly key: string
  readonly nextAt: number
  readonly seq: number
}

/** The place before all of these messages. */
export const FIRST: KeyedPlace = { accountId: '', key: '', nextAt: Number.MIN_SAFE_INTEGER, seq: 0 }

/** Messages per transaction. */
const BATCH = 1_000

interface Keyed {
  readonly seq: number
  readonly account_id: string
  readonly flow_key: string
  readonly next_at: number
}

const inPartitionZero = query<{ accountId: string; key: string; nextAt: number; seq: number }, Keyed>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'account_id', 'flow_key', 'next_at'])
    .where('flow_key', 'is not', null)
    .where('finished_at', 'is', null)
    .where('partition', '=', sql.lit(0))
    .where(sql<boolean>`(account_id, flow_key, next_at, seq) > (${p.accountId}, ${p.key}, ${p.nextAt}, ${p.seq})`)
    .orderBy('account_id')
    .orderBy('flow_key')
    .orderBy('next_at')
    .orderBy('seq')
    .limit(BATCH)
    .$narrowType<{ flow_key: string }>(),
)

const move = query<{ seqs: readonly number[]; partition: number }>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({ partition: p.partition })
    .where(d.inNumbers('seq', p.seqs))
    .where('finished_at', 'is', null),
)

/**
 * Moves a batch of messages that a version without partitions has stored in partition 0 to the partitions of their
 * flow-control keys. A repeated call changes nothing. Returns where the next batch begins; `undefined` at the end.
 */
export const moveToKeys = write(
  'flowPartitions.moveToKeys',
  function* ({ after }: { after: KeyedPlace }): Transaction<KeyedPlace | undefined> {
    const rows = yield* all(inPartitionZero, { ...after })
    const seqsOf = new Map<number, number[]>()
    for (const { seq, account_id, flow_key } of rows) {
      const partition = partitionOfKey(account_id, flow_key)
      const seqs = seqsOf.get(partition) ?? []
      if (partition !== 0) seqsOf.set(partition, [...seqs, seq])
    }
    for (const [partition, seqs] of seqsOf) yield* change(move, { partition, seqs })
    const last = rows.at(-1)
    if (!last || rows.length < BATCH) return undefined
    return { accountId: last.account_id, key: last.flow_key, nextAt: last.next_at, seq: last.seq }
  },
  { turn: 'background' },
)
