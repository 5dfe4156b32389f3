import { deletePendingOfGroups, type PendingRow } from '../../queue/transactions/messages.js'
import { type SettleArgs, settleMessage } from '../../queue/transactions/messages-settle.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessageAttemptsTable } from '../../store/schema/messages.js'
import type { FailureState, RunContact, RunState } from '../../store/schema/runs.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import { appendElements } from './runs-append.js'
import { keepAttempts, keepAttemptsOfRuns } from './runs-attempts.js'
import { dropWaitsOf } from './runs-cancel.js'
import { deleteDone } from './runs-done.js'
import { type EndedChild, notifyParents } from './runs-parents.js'
import { keepRemains, remainsToKeep } from './runs-remains.js'
import type { NewElement } from './runs-rows.js'

/** The failure of a run. */
export interface RunFailing {
  /** The record of the failure; the transaction adds the earlier failed attempts as `attempts`. */
  readonly failure: Readonly<Record<string, unknown>> & { readonly status: number }
  readonly dlqId: string
  /** The failure callback, if the run has one. */
  readonly callback?: NewElement
}

/** The effect of a delivery's outcome on its run. */
export type RunEffect =
  /** The run fails, unless it has ended. */
  | { readonly kind: 'fail'; readonly failing: RunFailing }
  /** The run fails if its SDK has not confirmed the first contact. */
  | { readonly kind: 'fail-unless-confirmed'; readonly failing: RunFailing }
  /** An element is appended, unless the run has ended. */
  | { readonly kind: 'append'; readonly element: NewElement }
  /** The failure callback of a failed run has ended. */
  | {
      readonly kind: 'callback-ended'
      readonly state: FailureState | null
      readonly callback: Readonly<Record<string, unknown>>
    }

/** The outcome of a delivery, and its effect on the run. */
export interface SettleRunArgs {
  readonly runSeq: number
  /** The end of the message; it must delete the row. */
  readonly message: SettleArgs
  readonly effect: RunEffect
}

/** `gone`: the message is no longer pending; nothing was changed. */
export type SettleRunResult =
  | { readonly kind: 'settled'; readonly offers: readonly PendingRow[]; readonly runEnded: boolean }
  | { readonly kind: 'gone' }

interface LockedRun extends EndedChild {
  readonly seq: number
  readonly account_id: string
  readonly state: RunState
  readonly contact: RunContact
  readonly failure: string | null
}

interface Failing {
  seq: number
  at: number
  failure: string
  status: number
  failureState: FailureState | null
  dlqId: string
}

const lockRun = query<{ seq: number }, LockedRun>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'account_id', 'state', 'contact', 'failure', 'parent_seq', 'parent'])
      .where('seq', '=', p.seq),
  ),
)
const failRun = query<Failing>(({ db, p }) =>
  db
    .updateTable('runs')
    .set({
      state: 'RUN_FAILED',
      finished_at: p.at,
      failure: p.failure,
      failure_status: p.status,
      failure_state: p.failureState,
      dlq_id: p.dlqId,
      died_at: p.at,
    })
    .where('seq', '=', p.seq),
)
const endCallback = query<{ seq: number; failure: string; failureState: FailureState | null }>(({ db, p }) =>
  db.updateTable('runs').set({ failure: p.failure, failure_state: p.failureState }).where('seq', '=', p.seq),
)
const ATTEMPT_COLUMNS = [
  ...(['started_at', 'status', 'headers', 'body', 'error'] as const),
  ...(['due_at', 'held_ms', 'finished_at'] as const),
]
const attemptsOf = query<{ seq: number }, Pick<MessageAttemptsTable, (typeof ATTEMPT_COLUMNS)[number]>>(({ db, p }) =>
  db
    .selectFrom('message_attempts')
    .select(ATTEMPT_COLUMNS)
    .where('message_seq', '=', p.seq)
    .orderBy('retried', 'desc')
    .limit(10),
)

/** Commits the outcome of a delivery together with its effect on the run. */
export const settleRun = write('runs.settle', function* (args: SettleRunArgs): Transaction<SettleRunResult> {
  const { message, effect } = args
  // Locks the run before the message, like every other transaction.
  const run = yield* first(lockRun, { seq: args.runSeq })
  if (effect.kind === 'fail' && run && !isFatal(run, effect)) return yield* settleLate(message)
  const before = yield* stateBefore(args)
  // The records of a failure and of its callback include earlier attempts. In all other cases the run log keeps them.
  const isRecordedElsewhere = effect.kind === 'callback-ended' || (run && isFatal(run, effect))
  if (!isRecordedElsewhere && message.retried > 0) yield* keepAttempts(message.seq)
  if ((yield* settleMessage(message)).kind === 'gone' || !run) return { kind: 'gone' }
  return yield* applyEffect(run, args, before)
})

const NOTHING: SettleRunResult = { kind: 'settled', offers: [], runEnded: false }

/** Whether the effect fails the run: not if the run has ended, nor if its SDK has confirmed it. */
function isFatal({ state, contact }: LockedRun, effect: RunEffect): boolean {
  if (state !== 'RUN_STARTED') return false
  return effect.kind === 'fail' || (effect.kind === 'fail-unless-confirmed' && contact !== 'known')
}

/** Settles a delivery that failed for good after its run had ended: its last attempt goes to the log. */
function* settleLate(message: SettleArgs): Transaction<SettleRunResult> {
  const end = { kind: 'retry', nextAt: message.at } as const
  if ((yield* settleMessage({ ...message, end })).kind === 'gone') return { kind: 'gone' }
  yield* deleteDone({ seq: message.seq, retried: message.retried + 1 })
  return NOTHING
}

/** Data that is deleted with the message, and is read before. */
interface StateBefore {
  /** The earlier failed attempts, newest first. */
  readonly attempts: readonly object[]
  readonly remains: Parameters<typeof keepRemains>[0]
}

function* stateBefore({ runSeq, message, effect }: SettleRunArgs): Transaction<StateBefore> {
  const fails = effect.kind === 'fail' || effect.kind === 'fail-unless-confirmed'
  const hasFailed = message.retried > 0 && effect.kind !== 'append'
  return {
    attempts: hasFailed ? yield* attemptsBefore(message.seq) : [],
    remains: fails ? yield* remainsToKeep(runSeq) : [],
  }
}

function* applyEffect(
  run: LockedRun,
  { effect, message }: SettleRunArgs,
  before: StateBefore,
): Transaction<SettleRunResult> {
  switch (effect.kind) {
    case 'fail':
    case 'fail-unless-confirmed':
      return isFatal(run, effect) ? yield* fail(run, effect.failing, before, message.at) : NOTHING
    case 'append': {
      if (run.state !== 'RUN_STARTED') return NOTHING
      const appending = { accountId: run.account_id, runSeq: run.seq, element: effect.element }
      return { kind: 'settled', offers: yield* appendElements([appending], message.at), runEnded: false }
    }
    case 'callback-ended': {
      const failure = JSON.parse(run.failure ?? '{}')
      failure.callback = { ...failure.callback, ...effect.callback, attempts: before.attempts }
      yield* change(endCallback, { seq: run.seq, failure: JSON.stringify(failure), failureState: effect.state })
      return NOTHING
    }
  }
}

function* fail(
  run: LockedRun,
  failing: RunFailing,
  { attempts, remains }: StateBefore,
  at: number,
): Transaction<SettleRunResult> {
  yield* keepAttemptsOfRuns([run.seq])
  yield* deletePendingOfGroups([run.seq])
  yield* dropWaitsOf([run.seq])
  yield* keepRemains(remains)
  const failure = JSON.stringify({ ...failing.failure, attempts })
  const failureState = failing.callback ? 'CALLBACK_INPROGRESS' : null
  yield* change(failRun, {
    seq: run.seq,
    at,
    failure,
    status: failing.failure.status,
    failureState,
    dlqId: failing.dlqId,
  })
  const parentOffers = yield* notifyParents([run], { isCanceled: false, isFailed: true }, at)
  const callback = failing.callback ? [{ accountId: run.account_id, runSeq: run.seq, element: failing.callback }] : []
  return { kind: 'settled', offers: [...parentOffers, ...(yield* appendElements(callback, at))], runEnded: true }
}

function* attemptsBefore(messageSeq: number): Transaction<object[]> {
  const rows = yield* all(attemptsOf, { seq: messageSeq })
  return rows.map((row) => ({
    time: row.started_at,
    status: row.status,
    headers: JSON.parse(row.headers),
    body: Buffer.from(row.body ?? []).toString('base64'),
    error: row.error,
    ...(row.due_at !== null &&
      row.held_ms !== null && { times: [row.due_at, row.held_ms, row.started_at, row.finished_at] }),
  }))
}
