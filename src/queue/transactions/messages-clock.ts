import { sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import type { DuePlace } from './messages.js'

/**
 * Corrections after a clock that ran ahead was set back. They apply to messages whose creation is now in the future, and to
 * messages that are due later than they should be.
 */

/** Number of the newest messages that show how far the clock was ahead. */
const LOOKED_AT = 1_000

const latestOfMessages = query<object, { created: number | null; finished: number | null }>(({ db }) =>
  db
    .selectFrom((q) =>
      q
        .selectFrom('messages')
        .select(['created_at', 'finished_at'])
        .orderBy('seq', 'desc')
        .limit(LOOKED_AT)
        .as('newest'),
    )
    .select((q) => [q.fn.max('created_at').as('created'), q.fn.max('finished_at').as('finished')]),
)
const latestOfAttempts = query<object, { finished: number | null }>(({ db }) =>
  db
    .selectFrom('message_attempts')
    .select((q) => q.fn.max('finished_at').as('finished'))
    .where('message_seq', 'in', (q) => q.selectFrom('messages').select('seq').orderBy('seq', 'desc').limit(LOOKED_AT)),
)

/** The latest time stored with the newest messages, Unix milliseconds; 0 if there are none. */
export const latest = read('messagesClock.latest', function* (_: object): Transaction<number> {
  const messages = yield* first(latestOfMessages, {})
  const attempts = yield* first(latestOfAttempts, {})
  return Math.max(messages?.created ?? 0, messages?.finished ?? 0, attempts?.finished ?? 0)
})

interface Waiting {
  readonly seq: number
  readonly next_at: number
  readonly created_at: number
  readonly retried: number
  readonly config: string
  readonly attempted_at: number | null
}

type Page = DuePlace & { limit: number }

const waitingOf = (state: 'pending' | 'held') =>
  query<Page, Waiting>(({ db, p }) =>
    db
      .selectFrom('messages')
      .select(['seq', 'next_at', 'created_at', 'retried', 'config'])
      .select((q) =>
        q
          .selectFrom('message_attempts')
          .select((a) => a.fn.max('finished_at').as('at'))
          .whereRef('message_attempts.message_seq', '=', 'messages.seq')
          .as('attempted_at'),
      )
      .where('state', '=', sql.lit(state))
      .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
      .orderBy('next_at')
      .orderBy('seq')
      .limit(p.limit),
  )
const waiting = { pending: waitingOf('pending'), held: waitingOf('held') }

interface Moved {
  readonly seqs: readonly number[]
  readonly now: number
  readonly byMs: number
}

const moveMessages = query<Moved>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({
      next_at: sql<number>`case when next_at - ${p.byMs} < ${p.now} then ${p.now} else next_at - ${p.byMs} end`,
      created_at: sql<number>`case when created_at > ${p.now} then ${p.now} else created_at end`,
    })
    .where(d.inNumbers('seq', p.seqs)),
)
const moveAttempts = query<Moved>(({ db, p, d }) =>
  db
    .updateTable('message_attempts')
    .set({
      started_at: sql<number>`case when started_at > ${p.now} then ${p.now} else started_at end`,
      finished_at: p.now,
      next_at: sql<number>`case when next_at - ${p.byMs} < ${p.now} then ${p.now} else next_at - ${p.byMs} end`,
    })
    .where(d.inNumbers('message_seq', p.seqs))
    .where('finished_at', '>', p.now),
)

/** One step of a shift. */
export interface ShiftArgs {
  readonly state: 'pending' | 'held'
  readonly now: number
  /** How far the clock was ahead. */
  readonly byMs: number
  /** Where the previous step ended. */
  readonly after: DuePlace
  readonly limit: number
}

/** Part of the configuration of a message whose publisher named the time of its first attempt. */
const FIXED = '"fixedTime":true'

/**
 * Whether a message began to wait while the clock was ahead. A retry waits from the last attempt. A first attempt waits from
 * the creation, unless the publisher named its time.
 */
function isFromAhead({ retried, created_at, attempted_at, config }: Waiting, now: number): boolean {
  return retried > 0 ? (attempted_at ?? 0) > now : created_at > now && !config.includes(FIXED)
}

/**
 * One step through waiting messages. Messages that began to wait while the clock was ahead become due earlier by `byMs`,
 * but not before `now`; a creation in the future becomes `now`. A second walk changes nothing. Returns the place of the
 * next step; `undefined` at the end.
 */
export const shift = write(
  'messagesClock.shift',
  function* ({ state, now, byMs, after, limit }: ShiftArgs): Transaction<DuePlace | undefined> {
    const rows = yield* all(waiting[state], { ...after, limit })
    const seqs = rows.filter((row) => isFromAhead(row, now)).map(({ seq }) => seq)
    if (seqs.length > 0) {
      yield* change(moveMessages, { seqs, now, byMs })
      yield* change(moveAttempts, { seqs, now, byMs })
    }
    const last = rows.at(-1)
    return last && rows.length === limit ? { nextAt: last.next_at, seq: last.seq } : undefined
  },
  { turn: 'background' },
)

const shortenKeys = query<{ latest: number }>(({ db, p }) =>
  db.updateTable('message_keys').set({ expires_at: p.latest }).where('expires_at', '>', p.latest),
)

/** Caps the expiry of all deduplication keys. */
export const limitKeys = write('messagesClock.limitKeys', function* (args: { latest: number }): Transaction<number> {
  return yield* change(shortenKeys, args)
})
