import { sql } from 'kysely'
import { dueTime } from '../../queue/transactions/messages-parked.js'
import { type LastAttempt, lastAttempts } from '../../queue/transactions/messages-standing.js'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ElementKind } from '../../store/schema/runs.js'
import { all, type Transaction } from '../../store/statement.js'

/**
 * Reads what many active runs wait for at once. Unlike the log it reads neither payloads nor results. It reads a pending
 * element only if that is short, to find the name of its step.
 */

/** A pending message of a run with the element that it delivers. The columns of the element are NULL if there is none. */
export interface PendingOfRun {
  readonly seq: number
  readonly run_seq: number
  readonly message_id: string
  readonly retried: number
  readonly next_at: number
  readonly kind: ElementKind | null
  readonly position: number | null
  readonly meta: string | null
  /** NULL if it is long: steps that sleep, and plans, are short. */
  readonly body: Uint8Array | null
}

/** A wait of a run. */
export interface WaitOfRun {
  readonly run_seq: number
  readonly event_id: string
  readonly message_id: string
  readonly wait: string
}

/** An active run that another one has invoked. */
export interface ChildOfRun {
  readonly run_id: string
  readonly parent_seq: number
  readonly parent: string | null
}

/** Everything that shows what some runs wait for. */
export interface RunsStanding {
  /** `runs.seq` of the active runs. */
  readonly active: readonly number[]
  /** `runs.seq` of the active runs that are paused. */
  readonly paused: readonly number[]
  readonly pending: readonly PendingOfRun[]
  readonly waits: readonly WaitOfRun[]
  readonly children: readonly ChildOfRun[]
  readonly attempts: readonly LastAttempt[]
}

/** Arguments for the state of some runs. */
export interface StandingArgs {
  /** `runs.seq` */
  readonly seqs: readonly number[]
  /** Whether the last failed attempts are wanted. */
  readonly attempts: boolean
}

/**
 * Maximum rows of one table that are read at once, because a run may have any number of parallel branches. If there are
 * more, the caller asks for fewer runs; for a single run, these rows are enough.
 */
const MAX_ROWS = 1_000

interface OfRuns {
  seqs: readonly number[]
}

/** Longest body of an element that is read. */
const MAX_BODY_BYTES = 4_096

const activeRuns = query<OfRuns, { seq: number; paused_at: number | null }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'paused_at'])
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('RUN_STARTED')),
)
/** `|| ''`, `+ 0` and `coalesce` keep PostgreSQL from also reading an index of all pending messages or dead letters. */
const pendingOf = query<OfRuns, PendingOfRun>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .leftJoin('steps', (join) =>
      join
        .onRef('steps.message_id', '=', 'messages.message_id')
        .on(sql<boolean>`steps.run_seq + 0 = messages.group_key`),
    )
    .select(['messages.seq', 'messages.message_id', 'messages.retried', 'messages.next_at'])
    .select(['steps.kind', 'steps.position', 'steps.meta'])
    .select(sql<number>`messages.group_key`.as('run_seq'))
    .select(
      sql<Uint8Array | null>`case when length(steps.body) <= ${sql.lit(MAX_BODY_BYTES)} then steps.body end`.as('body'),
    )
    .where(d.inNumbers('messages.group_key', p.seqs))
    .where(sql<boolean>`messages.state || '' = 'pending'`)
    .limit(MAX_ROWS),
)
const waitsOf = query<OfRuns, WaitOfRun>(({ db, p, d }) =>
  db
    .selectFrom('run_waits')
    .select(['run_seq', 'event_id', 'message_id', 'wait'])
    .where(d.inNumbers('run_seq', p.seqs))
    .limit(MAX_ROWS),
)
const childrenOf = query<OfRuns, ChildOfRun>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['run_id', 'parent', sql<number>`parent_seq`.as('parent_seq')])
    .where('parent_seq', 'is not', null)
    .where(d.inNumbers('parent_seq', p.seqs))
    .where(sql<boolean>`state || '' = 'RUN_STARTED'`)
    .limit(MAX_ROWS),
)

/** Reads what some runs wait for, from one snapshot; `undefined` if that is too much at once. */
export const standing = read(
  'runs.standing',
  function* ({ seqs, attempts }: StandingArgs): Transaction<RunsStanding | undefined> {
    const runs = yield* all(activeRuns, { seqs })
    const active = runs.map(({ seq }) => seq)
    const paused = runs.filter(({ paused_at }) => paused_at !== null).map(({ seq }) => seq)
    if (active.length === 0) return { active, paused, pending: [], waits: [], children: [], attempts: [] }
    const pending = (yield* all(pendingOf, { seqs: active })).map((one) => ({ ...one, next_at: dueTime(one.next_at) }))
    const waits = yield* all(waitsOf, { seqs: active })
    const children = yield* all(childrenOf, { seqs: active })
    const isMuch = [pending, waits, children].some((rows) => rows.length === MAX_ROWS)
    if (isMuch && seqs.length > 1) return undefined
    const retried = attempts ? pending.filter((message) => message.retried > 0) : []
    return { active, paused, pending, waits, children, attempts: yield* lastAttempts(retried.map(({ seq }) => seq)) }
  },
  { turn: 'background' },
)

/** The record of the failure of a dead run. */
export interface DeadRunFailure {
  readonly seq: number
  /** JSON of `FailureRecord`; NULL if it is very long. */
  readonly failure: string | null
}

/** Longest record that is read: it holds the responses of all attempts. */
const MAX_FAILURE_BYTES = 262_144

const failuresOf = query<OfRuns, DeadRunFailure>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select('seq')
    .select(
      sql<string | null>`case when length(failure) <= ${sql.lit(MAX_FAILURE_BYTES)} then failure end`.as('failure'),
    )
    .where(d.inNumbers('seq', p.seqs))
    .where(sql<boolean>`coalesce(dlq_id, '') <> ''`),
)

/** Reads why dead runs failed. */
export const failures = read(
  'runs.failures',
  (args: { readonly seqs: readonly number[] }): Transaction<DeadRunFailure[]> => all(failuresOf, args),
  { turn: 'background' },
)
