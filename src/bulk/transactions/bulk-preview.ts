import { all, read, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'

/** An item of a set that is looked at before anything is done to it. */
export interface PreviewRow {
  readonly seq: number
  /** Of the run or the message. */
  readonly id: string
  readonly url: string
  /** Every label between bars, `|a|b|`; empty for none. */
  readonly labels: string
  /** Unix milliseconds. */
  readonly created_at: number
  readonly dlq_id: string | null
}

/** Asks what a few items of a set are. */
export interface PreviewArgs {
  readonly of: 'runs' | 'messages'
  readonly seqs: readonly number[]
}

const runs = query<PreviewArgs, PreviewRow>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id as id', 'url', 'labels', 'created_at', 'dlq_id'])
    .where(d.inNumbers('seq', p.seqs)),
)
const messages = query<PreviewArgs, PreviewRow>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'message_id as id', 'url', 'labels', 'created_at', 'dlq_id'])
    .where(d.inNumbers('seq', p.seqs)),
)

/** What a few items of a set are, in the order of their numbers in `seqs`. */
export const preview = read('bulk.preview', function* (args: PreviewArgs): Transaction<PreviewRow[]> {
  if (args.seqs.length === 0) return []
  const rows = yield* all(args.of === 'runs' ? runs : messages, args)
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  return args.seqs.flatMap((seq) => bySeq.get(seq) ?? [])
})
