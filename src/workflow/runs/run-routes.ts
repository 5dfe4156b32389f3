import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { endRun, getRunSteps } from '../../contract/workflow/runs.js'
import { type Route, route, type TooLarge } from '../../http/index.js'
import type { Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { RunState } from '../../store/schema/runs.js'
import { base64 } from '../protocol/bytes.js'
import * as runsCancel from '../transactions/runs-cancel.js'
import * as runsFinish from '../transactions/runs-finish.js'
import * as runsRead from '../transactions/runs-read.js'
import type { RecentLists } from './recent-lists.js'

/** What the operations on single runs work with. */
export interface RunDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'drop'>
  readonly clock: Clock
  readonly lists: Pick<RecentLists, 'forget'>
  readonly refusedReturns: Pick<RefusedReturns, 'add'>
}

/** How a request has left a run. */
interface Ended {
  readonly workflowRunId: string
  readonly workflowState: RunState
}

/** Ending a run, and reading the list of one that is going on. */
export function runRoutes(deps: RunDeps): Route[] {
  return [
    route(getRunSteps, ({ params, caller }) =>
      listOf(deps, { accountId: caller.accountId, runId: params.workflowRunId }),
    ),
    {
      ...route(endRun, ({ params, query, body, caller }) => {
        const name = { accountId: caller.accountId, runId: params.workflowRunId }
        return query.cancel === false ? finish(deps, name, new TextDecoder().decode(body)) : cancel(deps, name)
      }),
      refuseTooLarge: (request) => refuseReturn(deps, request),
    },
  ]
}

const RETURN_TOO_LARGE =
  'A program returns its result in one request: keep what is large elsewhere, and return where it is.'

/** To run the program again would not make less of what it returns. */
function refuseReturn({ refusedReturns, clock }: RunDeps, { target, caller, error }: TooLarge): HomeportError {
  const { pathname, searchParams } = new URL(target, 'http://localhost')
  if (!caller || searchParams.get('cancel') !== 'false') return error
  const runId = decodeURIComponent(pathname.slice(pathname.lastIndexOf('/') + 1))
  refusedReturns.add({ accountId: caller.accountId, runId }, clock.now())
  return new HomeportError('step_refused', { problem: `${error.message} ${RETURN_TOO_LARGE}` })
}

async function listOf({ store }: RunDeps, name: RunName) {
  const found = await store.run(runsRead.withElements, name)
  if (!found) throw new HomeportError('run_not_found', { runId: name.runId })
  if (found.run.state !== 'RUN_STARTED') {
    throw new HomeportError('run_not_going_on', { runId: name.runId, state: found.run.state })
  }
  return found.elements.map(({ message_id, body, kind }) => ({
    messageId: message_id,
    body: base64(body),
    callType: kind,
  }))
}

/** The program has returned. Said twice, or to a run that has ended otherwise, it changes nothing. */
async function finish({ store, queue, clock, lists }: RunDeps, name: RunName, response: string): Promise<Ended> {
  const result = await store.run(runsFinish.finishRun, { ...name, response, at: clock.now() })
  switch (result.kind) {
    case 'missing':
      throw new HomeportError('run_not_found', { runId: name.runId })
    case 'already':
      return { workflowRunId: name.runId, workflowState: result.state }
    case 'finished':
      lists.forget(result.runSeq)
      queue.offer(result.offers)
      return { workflowRunId: name.runId, workflowState: 'RUN_SUCCESS' }
  }
}

async function cancel({ store, queue, clock }: RunDeps, name: RunName): Promise<Ended> {
  const run = await store.run(runsRead.find, name)
  if (!run) throw new HomeportError('run_not_found', { runId: name.runId })
  const { cancelled, offers } = await store.run(runsCancel.cancelRuns, { seqs: [run.seq], at: clock.now() })
  queue.drop({ groupKeys: cancelled })
  queue.offer(offers)
  if (cancelled.length === 0) await explainUncancelled(store, name)
  return { workflowRunId: name.runId, workflowState: 'RUN_CANCELED' }
}

/** A run that was cancelled before is as it should be; one that has ended otherwise cannot be cancelled. */
async function explainUncancelled(store: Store, name: RunName): Promise<void> {
  const run = await store.run(runsRead.find, name)
  if (!run) throw new HomeportError('run_not_found', { runId: name.runId })
  if (run.state !== 'RUN_CANCELED')
    throw new HomeportError('run_not_cancelable', { runId: name.runId, state: run.state })
}

/** So many are kept in mind; each is asked for within moments, when its delivery is answered. */
const MAX_ENTRIES = 1_000

/** A run as callers name it. */
export interface RunName {
  readonly accountId: string
  readonly runId: string
}

/**
 * Runs whose programs have returned more than one request may bring. An SDK passes the refusal on as a failure like any
 * other, and the same return would be refused after each retry: so the delivery that it came from is not tried again.
 * Kept in memory: after a restart the return comes once more.
 */
export class RefusedReturns {
  /** When the return was refused, Unix milliseconds; the oldest first. */
  readonly #refusedAt = new Map<string, number>()

  /** The return of a run was refused. */
  add(run: RunName, at: number): void {
    this.#refusedAt.delete(keyOf(run))
    this.#refusedAt.set(keyOf(run), at)
    const [oldest] = this.#refusedAt.size > MAX_ENTRIES ? this.#refusedAt.keys() : []
    if (oldest !== undefined) this.#refusedAt.delete(oldest)
  }

  /** Whether there is any, so that nobody else has to be asked which run is meant. */
  get isEmpty(): boolean {
    return this.#refusedAt.size === 0
  }

  /** Whether the return of a run was refused while an attempt was under way that began at this time. */
  hasSince(run: RunName, startedAt: number): boolean {
    return (this.#refusedAt.get(keyOf(run)) ?? Number.NEGATIVE_INFINITY) >= startedAt
  }
}

const keyOf = ({ accountId, runId }: RunName): string => `${accountId} ${runId}`
