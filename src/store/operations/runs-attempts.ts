import { sql } from 'kysely'
import { change, type Transaction } from '../operation.js'
import { query } from '../query.js'

/** The newest failed attempts of a delivery are kept, up to this many. */
const MOST_OF_DELIVERY = 20
/** A run that has this many keeps no more. */
const MOST_OF_RUN = 100
/** Of an answer's body this much is kept. */
const BODY_BYTES = 4_096
/** Headers that are longer are left out. */
const HEADERS_LENGTH = 4_096

const keep = query<{ seq: number }>(({ db, p }) =>
  db
    .insertInto('run_attempts')
    .columns(['run_seq', 'message_id', 'retried', 'started_at', 'status', 'headers', 'body', 'error'])
    .expression(
      db
        .selectFrom('message_attempts as a')
        .innerJoin('messages as m', 'm.seq', 'a.message_seq')
        .select(['m.group_key', 'm.message_id', 'a.retried', 'a.started_at', 'a.status'])
        .select([
          sql<string>`case when length(a.headers) <= ${sql.lit(HEADERS_LENGTH)} then a.headers else '{}' end`.as(
            'headers',
          ),
          sql<Uint8Array | null>`substr(a.body, 1, ${sql.lit(BODY_BYTES)})`.as('body'),
          'a.error',
        ])
        .where('a.message_seq', '=', p.seq)
        .where('m.state', '=', 'pending')
        .where(sql<boolean>`(select count(*) from run_attempts where run_seq = m.group_key) < ${sql.lit(MOST_OF_RUN)}`)
        .orderBy('a.retried', 'desc')
        .limit(sql.lit(MOST_OF_DELIVERY)),
    )
    .onConflict((conflict) => conflict.doNothing()),
)

/** Keeps the failed attempts of a message whose delivery has come through at last, for the log of its run. */
export function* keepAttempts(messageSeq: number): Transaction<void> {
  yield* change(keep, { seq: messageSeq })
}
