import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { endRun, getRunSteps } from '../../contract/workflow/runs.js'
import { type Route, route, type TooLarge } from '../../http/index.js'
import { batchesOf, longList, PAGE, type Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { RunState } from '../../store/schema/runs.js'
import type { WorkflowMeter } from '../../telemetry/index.js'
import { base64 } from '../protocol/bytes.js'
import * as runsCancel from '../transactions/runs-cancel.js'
import * as runsFinish from '../transactions/runs-finish.js'
import * as runsRead from '../transactions/runs-read.js'
import type { ElementRow } from '../transactions/runs-rows.js'
import type { RecentLists } from './recent-lists.js'
import type { RefusedReturns, RunName } from './refused-returns.js'
import type { RunNodes } from './run-nodes.js'

/** Collaborators of the routes of single runs. */
export interface RunDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'dropEverywhere'>
  readonly clock: Clock
  readonly lists: Pick<RecentLists, 'forget'>
  readonly nodes: Pick<RunNodes, 'ended' | 'refused'>
  readonly refusedReturns: Pick<RefusedReturns, 'add'>
  readonly meter: Pick<WorkflowMeter, 'ended' | 'activity'>
}

/** State of a run after a request. */
interface Ended {
  readonly workflowRunId: string
  readonly workflowState: RunState
}

/** Routes that end a run, or read the list of an active one. */
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
  'A program returns its result in one request: store large values elsewhere, and return a reference.'

/** Records a return that is too large. A retry would return the same, so the delivery fails at once (`RefusedReturns`). */
function refuseReturn({ refusedReturns, nodes, clock }: RunDeps, { target, caller, error }: TooLarge): HomeportError {
  const { pathname, searchParams } = new URL(target, 'http://localhost')
  if (!caller || searchParams.get('cancel') !== 'false') return error
  const runId = decodeURIComponent(pathname.slice(pathname.lastIndexOf('/') + 1))
  const run = { accountId: caller.accountId, runId }
  refusedReturns.add(run, clock.now())
  nodes.refused(run)
  return new HomeportError('step_refused', { problem: `${error.message} ${RETURN_TOO_LARGE}` })
}

/** Streams the list of a run. Reads it page by page as the client does, because a list may be larger than the memory. */
async function listOf({ store, clock }: RunDeps, name: RunName) {
  const run = await store.run(runsRead.find, name)
  if (!run) throw new HomeportError('run_not_found', { runId: name.runId })
  if (run.state !== 'RUN_STARTED') throw new HomeportError('run_not_active', { runId: name.runId, state: run.state })
  return longList(clock, elementsOf(store, run.seq))
}

async function* elementsOf(store: Store, seq: number): AsyncGenerator<ReturnType<typeof onWire>[]> {
  for (let first: number | undefined = 0; first !== undefined; ) {
    const sizes: { position: number; bytes: number }[] = await store.run(runsRead.sizes, {
      seq,
      first,
      limit: PAGE.items,
    })
    for (const page of batchesOf(sizes, PAGE)) {
      const [from, to] = [page[0], page.at(-1)]
      if (from && to)
        yield (await store.run(runsRead.elements, { seq, first: from.position, last: to.position })).map(onWire)
    }
    const last = sizes.at(-1)
    first = last && sizes.length === PAGE.items ? last.position + 1 : undefined
  }
}

const onWire = ({ message_id, body, kind }: ElementRow) => ({
  messageId: message_id,
  body: base64(body),
  callType: kind,
})

/** Ends a run whose program has returned. Repeated requests, and requests for a run that has ended, change nothing. */
async function finish(
  { store, queue, clock, lists, nodes, meter }: RunDeps,
  name: RunName,
  response: string,
): Promise<Ended> {
  const result = await store.run(runsFinish.finishRun, { ...name, response, at: clock.now() })
  switch (result.kind) {
    case 'missing':
      throw new HomeportError('run_not_found', { runId: name.runId })
    case 'already':
      return { workflowRunId: name.runId, workflowState: result.state }
    case 'finished':
      meter.ended.success++
      meter.activity.add(name.accountId, 'succeeded_runs')
      lists.forget(result.runSeq)
      nodes.ended(result.runSeq)
      queue.offer(result.offers)
      return { workflowRunId: name.runId, workflowState: 'RUN_SUCCESS' }
  }
}

async function cancel({ store, queue, clock, meter }: RunDeps, name: RunName): Promise<Ended> {
  const run = await store.run(runsRead.find, name)
  if (!run) throw new HomeportError('run_not_found', { runId: name.runId })
  const { cancelled, offers } = await store.run(runsCancel.cancelRuns, { seqs: [run.seq], at: clock.now() })
  meter.ended.cancelled += cancelled.length
  meter.activity.add(name.accountId, 'cancelled_runs', cancelled.length)
  // Right after the commit, not after the drop: another cancel may end these messages while other nodes answer.
  queue.offer(offers)
  // Before the answer, so that no node delivers anything of the run after it.
  if (cancelled.length > 0) await queue.dropEverywhere({ groupKeys: cancelled })
  if (cancelled.length === 0) {
    await refuseEndedOtherwise(store, name)
    // A commit whose reply was lost, or a node that died, may have cancelled the run without a drop.
    await queue.dropEverywhere({ groupKeys: [run.seq] })
  }
  return { workflowRunId: name.runId, workflowState: 'RUN_CANCELED' }
}

/** Accepts a run that is cancelled already. Refuses a run that ended otherwise. */
async function refuseEndedOtherwise(store: Store, name: RunName): Promise<void> {
  const run = await store.run(runsRead.find, name)
  if (!run) throw new HomeportError('run_not_found', { runId: name.runId })
  if (run.state !== 'RUN_CANCELED')
    throw new HomeportError('run_already_ended', { runId: name.runId, state: run.state })
}
