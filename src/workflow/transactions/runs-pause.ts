import { sql } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { parkGroups, unparkGroups } from '../../queue/transactions/messages-parked.js'
import { change, first, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RunState } from '../../store/schema/runs.js'

/**
 * Pause and resume of a run. A paused run stays in the state RUN_STARTED: its program may still send the results of a
 * request in flight, and events and invoked runs may still report to it. But its messages are parked, those that it had and
 * those that it gets (`runs-append.ts`), so nothing is delivered before it is resumed.
 */

/**
 * What a pause does to sleeps, delays and deadlines. `keep`: they stay, and what has passed is due at the resume; `hold`: the
 * resume moves them later by the time that the run was paused.
 */
export type PauseClock = 'keep' | 'hold'

/** Who paused a run, and how; JSON in `runs.pause`. */
export interface RunPause {
  readonly by: string
  readonly reason?: string | undefined
  readonly clock: PauseClock
}

/** A run, for an operation on it. */
export interface PausingArgs {
  readonly accountId: string
  readonly runId: string
  readonly audit: NewAuditRow
  /** Unix milliseconds. */
  readonly at: number
}

/** `already`: it was paused before, and stays as it is. */
export type PauseRunResult =
  | { readonly kind: 'paused' | 'already'; readonly runSeq: number; readonly pausedAt: number }
  | { readonly kind: 'ended'; readonly state: RunState }
  | { readonly kind: 'missing' }

/** `already`: it was not paused. */
export type ResumeRunResult =
  | { readonly kind: 'resumed'; readonly pausedAt: number; readonly offers: readonly PendingRow[] }
  | { readonly kind: 'already' }
  | { readonly kind: 'ended'; readonly state: RunState }
  | { readonly kind: 'missing' }

interface Locked {
  readonly seq: number
  readonly state: RunState
  readonly paused_at: number | null
  readonly pause: string | null
}

const lock = query<{ accountId: string; runId: string }, Locked>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'state', 'paused_at', 'pause'])
      .where('account_id', '=', p.accountId)
      .where('run_id', '=', p.runId),
  ),
)
const setPause = query<{ seq: number; at: number; pause: string }>(({ db, p }) =>
  db.updateTable('runs').set({ paused_at: p.at, pause: p.pause }).where('seq', '=', p.seq),
)
const clearPause = query<{ seq: number }>(({ db, p }) =>
  db.updateTable('runs').set({ paused_at: null, pause: null }).where('seq', '=', p.seq),
)
const moveDeadlines = query<{ seq: number; since: number; at: number }>(({ db, p }) =>
  db
    .updateTable('run_waits')
    .set({
      deadline: sql<number>`deadline + ${p.at} - case
        when created_at > ${p.at} then ${p.at} when created_at > ${p.since} then created_at else ${p.since} end`,
    })
    .where('run_seq', '=', p.seq),
)

/** Pauses a run. After the commit the caller drops its messages on all nodes, with `inFlight: 'ends'`. */
export const pauseRun = write(
  'runs.pause',
  function* (args: PausingArgs & { readonly pause: RunPause }): Transaction<PauseRunResult> {
    const { accountId, runId, at } = args
    const run = yield* first(lock, { accountId, runId })
    if (!run) return { kind: 'missing' }
    if (run.state !== 'RUN_STARTED') return { kind: 'ended', state: run.state }
    if (run.paused_at !== null) return { kind: 'already', runSeq: run.seq, pausedAt: run.paused_at }
    yield* change(setPause, { seq: run.seq, at, pause: JSON.stringify(args.pause) })
    yield* parkGroups([run.seq])
    yield* recordAudit(args.audit)
    return { kind: 'paused', runSeq: run.seq, pausedAt: at }
  },
)

/** Lets a paused run go on. After the commit the caller offers the messages, as messages that are offered again. */
export const resumeRun = write('runs.unpause', function* (args: PausingArgs): Transaction<ResumeRunResult> {
  const { accountId, runId, at } = args
  const run = yield* first(lock, { accountId, runId })
  if (!run) return { kind: 'missing' }
  if (run.state !== 'RUN_STARTED') return { kind: 'ended', state: run.state }
  if (run.paused_at === null) return { kind: 'already' }
  yield* change(clearPause, { seq: run.seq })
  // A clock that was set back must not bring due times forward.
  const since = Math.min(run.paused_at, at)
  const holds = storedPause(run.pause).clock === 'hold'
  if (holds) yield* change(moveDeadlines, { seq: run.seq, since, at })
  const offers = yield* unparkGroups({ groups: [run.seq], heldSince: holds ? since : undefined, at })
  yield* recordAudit(args.audit)
  return { kind: 'resumed', pausedAt: run.paused_at, offers }
})

/** Reads `runs.pause`. */
export function storedPause(json: string | null): RunPause {
  // Written by `pauseRun`.
  return JSON.parse(json ?? '{"by":"","clock":"keep"}') as RunPause
}
