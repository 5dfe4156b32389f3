import { sql } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { parkGroups, unparkGroups } from '../../queue/transactions/messages-parked.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RunState } from '../../store/schema/runs.js'
import { all, change, first, type Transaction } from '../../store/statement.js'

/**
 * Pause and resume of a run. A paused run stays in the state RUN_STARTED: its program may still send the results of a
 * request in flight, and events and invoked runs may still report to it. But its pending and new messages are parked
 * (`runs-append.ts`), so nothing is delivered before it is resumed.
 */

/**
 * The effect of a pause on sleeps, delays and deadlines. `keep`: they stay, and those that have passed are due at the
 * resume. `hold`: the resume moves them later by the time that the run was paused.
 */
export type PauseClock = 'keep' | 'hold'

/** Who paused a run, and how; JSON in `runs.pause`. */
export interface RunPause {
  readonly by: string
  readonly reason?: string | undefined
  readonly clock: PauseClock
  /** Set if its workflow was paused: the resume of the workflow also resumes the run. */
  readonly ofWorkflow?: true | undefined
}

/** A paused workflow: new runs of this URL begin paused. */
export interface PausedWorkflow {
  readonly url: string
  /** When it was paused, Unix milliseconds. */
  readonly at: number
  readonly pause: RunPause
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
/** Locks runs in the same order as all transactions, so that two actions never wait for each other. */
const lockAll = query<{ accountId: string; seqs: readonly number[] }, Locked>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'state', 'paused_at', 'pause'])
      .where('account_id', '=', p.accountId)
      .where(d.inNumbers('seq', p.seqs))
      .where('state', '=', sql.lit('RUN_STARTED'))
      .orderBy('seq', 'desc'),
  ),
)
const setPause = query<{ seqs: readonly number[]; at: number; pause: string }>(({ db, p, d }) =>
  db.updateTable('runs').set({ paused_at: p.at, pause: p.pause }).where(d.inNumbers('seq', p.seqs)),
)
const setPauseOfNew = query<{ seqs: readonly number[]; at: number; pause: string }>(({ db, p, d }) =>
  db
    .updateTable('runs')
    .set({ paused_at: p.at, pause: p.pause })
    .where(d.inNumbers('seq', p.seqs))
    .where('paused_at', 'is', null),
)
const clearPause = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.updateTable('runs').set({ paused_at: null, pause: null }).where(d.inNumbers('seq', p.seqs)),
)
const moveDeadlines = query<{ seqs: readonly number[]; since: number; at: number }>(({ db, p, d }) =>
  db
    .updateTable('run_waits')
    .set({
      deadline: sql<number>`deadline + ${p.at} - case
        when created_at > ${p.at} then ${p.at} when created_at > ${p.since} then created_at else ${p.since} end`,
    })
    .where(d.inNumbers('run_seq', p.seqs)),
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
    yield* hold([run.seq], args.pause, at)
    yield* recordAudit(args.audit)
    return { kind: 'paused', runSeq: run.seq, pausedAt: at }
  },
)

/** Resumes a paused run. After the commit the caller offers the messages, as messages that are offered again. */
export const resumeRun = write('runs.unpause', function* (args: PausingArgs): Transaction<ResumeRunResult> {
  const { accountId, runId, at } = args
  const run = yield* first(lock, { accountId, runId })
  if (!run) return { kind: 'missing' }
  if (run.state !== 'RUN_STARTED') return { kind: 'ended', state: run.state }
  if (run.paused_at === null) return { kind: 'already' }
  const offers = yield* endPauses([run], at)
  yield* recordAudit(args.audit)
  return { kind: 'resumed', pausedAt: run.paused_at, offers }
})

/** A batch of runs of a bulk action. */
export interface PausingSeqs {
  readonly accountId: string
  readonly seqs: readonly number[]
  /** Unix milliseconds. */
  readonly at: number
}

/** Pauses the runs that are active and not paused; see `pauseRun`. @returns their numbers. */
export function* pauseRuns({
  accountId,
  seqs,
  at,
  pause,
}: PausingSeqs & { readonly pause: RunPause }): Transaction<readonly number[]> {
  const open = (yield* all(lockAll, { accountId, seqs })).filter((run) => run.paused_at === null)
  const paused = open.map((run) => run.seq)
  yield* hold(paused, pause, at)
  return paused
}

/** Resumes the runs that are paused; see `resumeRun`. */
export function* resumeRuns({ accountId, seqs, at }: PausingSeqs): Transaction<{
  readonly resumed: readonly number[]
  readonly offers: readonly PendingRow[]
}> {
  const paused = (yield* all(lockAll, { accountId, seqs })).filter((run) => run.paused_at !== null)
  return { resumed: paused.map((run) => run.seq), offers: yield* endPauses(paused, at) }
}

/**
 * Pauses runs that the transaction has just created or brought back, if their workflow is paused. They count as paused since
 * `at` of their workflow, so that one statement can resume many. The caller must park their messages.
 * @returns the paused runs.
 */
export function* pauseBegun(
  runs: readonly { readonly seq: number; readonly url: string }[],
  workflows: readonly PausedWorkflow[] = [],
): Transaction<readonly number[]> {
  const held: number[] = []
  for (const { url, at, pause } of workflows) {
    const seqs = runs.filter((run) => run.url === url).map(({ seq }) => seq)
    if (seqs.length > 0) yield* change(setPauseOfNew, { seqs, at, pause: JSON.stringify(pause) })
    held.push(...seqs)
  }
  return held
}

/** Does the same, and parks the stored messages of these runs. @returns the messages that are not parked. */
export function* parkBegun(
  runs: readonly { readonly seq: number; readonly url: string }[],
  messages: readonly PendingRow[],
  workflows: readonly PausedWorkflow[] = [],
): Transaction<readonly PendingRow[]> {
  const held = new Set(yield* pauseBegun(runs, workflows))
  yield* parkGroups([...held])
  return messages.filter(({ group_key }) => group_key === null || !held.has(group_key))
}

function* hold(seqs: readonly number[], pause: RunPause, at: number): Transaction<void> {
  if (seqs.length === 0) return
  yield* change(setPause, { seqs, at, pause: JSON.stringify(pause) })
  yield* parkGroups(seqs)
}

/**
 * Ends the pauses of runs. Runs that were paused together, with the same clock, share their statements.
 * @returns their messages, for `queue.offer` as offered again.
 */
export function* endPauses(
  runs: readonly Pick<Locked, 'seq' | 'paused_at' | 'pause'>[],
  at: number,
): Transaction<PendingRow[]> {
  if (runs.length === 0) return []
  yield* change(clearPause, { seqs: runs.map(({ seq }) => seq) })
  const groups = new Map<number | undefined, number[]>()
  for (const { seq, paused_at, pause } of runs) {
    // A clock that was set back must not bring due times forward.
    const since = storedPause(pause).clock === 'hold' ? Math.min(paused_at ?? at, at) : undefined
    groups.set(since, [...(groups.get(since) ?? []), seq])
  }
  const offers: PendingRow[] = []
  for (const [heldSince, seqs] of groups) {
    if (heldSince !== undefined) yield* change(moveDeadlines, { seqs, since: heldSince, at })
    offers.push(...(yield* unparkGroups({ groups: seqs, heldSince, at })))
  }
  return offers
}

/** Reads `runs.pause`. */
export function storedPause(json: string | null): RunPause {
  // Written by `pauseRun`.
  return JSON.parse(json ?? '{"by":"","clock":"keep"}') as RunPause
}
