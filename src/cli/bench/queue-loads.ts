import { startBulkAction } from '../../contract/bulk/actions.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { cancelMessages } from '../../contract/queue/messages.js'
import { triggerRuns } from '../../contract/workflow/runs.js'
import { follow } from '../bulk/follow.js'
import { misused } from '../errors.js'
import { type Bench, closedLoop, type Timed } from './bench.js'
import type { Loaded } from './load.js'
import { workflowItem } from './receiver.js'

/** The workloads of the queue and of workflows. */

/** Delay of messages that should not be delivered: they are due long after the bench has ended. */
const LATER = '1d'
/** Runs that are triggered with one request. */
const TRIGGERED_AT_ONCE = 1_000
/** How long the server may take for its first delivery to this program. */
const REACHED_WITHIN_MS = 10_000

/** Publishes messages that are due much later, to measure only acknowledged publishes. */
export async function publishLoad(bench: Bench, timed: Timed): Promise<Loaded> {
  const body = 'x'.repeat(bench.options.size)
  bench.atEnd(() => cancelPending(bench))
  const headers = { ...messageHeaders(bench), 'upstash-delay': LATER }
  const path = `/v2/publish/${bench.receiver.hook}`
  return await timed(() => closedLoop(bench, () => bench.queue.send({ method: 'POST', path, body, headers })))
}

/** Publishes messages and waits for each delivery. */
export async function deliverLoad(bench: Bench, timed: Timed): Promise<Loaded> {
  bench.atEnd(() => cancelPending(bench))
  await checkReachable(bench)
  let published = 0
  return await timed(() => closedLoop(bench, () => delivered(bench, `message-${++published}`)))
}

/** Runs of five steps, from the trigger to the end. */
export async function stepsLoad(bench: Bench, timed: Timed): Promise<Loaded> {
  await checkReachable(bench)
  let triggered = 0
  const run = async (): Promise<void> => {
    const runId = `wfr_${bench.label}-${++triggered}`
    const ended = bench.receiver.arrival(runId)
    await Promise.all([ended, bench.queue.send(workflowItem(bench.receiver.workflow, runId, '{}', 'begin'))])
  }
  return await timed(() => closedLoop(bench, run))
}

/** Cancels many runs that have not begun with one bulk action. An operation is one run. */
export async function cancelLoad(bench: Bench, timed: Timed): Promise<Loaded> {
  const { api } = bench.session
  const { runs } = bench.options
  const label = `${bench.label}-cancel`
  const cancel = async (): Promise<void> => {
    const { actionId } = await api.call(startBulkAction, { body: { kind: 'cancelRuns', selector: { label } } })
    for await (const { state } of follow(api, actionId)) if (state !== 'running') return
  }
  bench.atEnd(cancel)
  await triggerMany(bench, label, runs)
  return await timed(async () => {
    const startedAt = performance.now()
    await cancel()
    const elapsedMs = performance.now() - startedAt
    return { perSecond: runs / (elapsedMs / 1_000), operations: runs, latenciesMs: Float64Array.of(elapsedMs) }
  })
}

async function triggerMany({ session, receiver, stop }: Bench, label: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= TRIGGERED_AT_ONCE) {
    stop.throwIfAborted()
    const headers = { 'upstash-label': label, 'upstash-delay': LATER }
    const one = { destination: receiver.workflow, headers, body: '{}' }
    const body = Array.from({ length: Math.min(left, TRIGGERED_AT_ONCE) }, () => one)
    await session.api.call(triggerRuns, { body })
  }
}

async function delivered({ queue, receiver, ...bench }: Bench, start: string): Promise<void> {
  const body = start.padEnd(bench.options.size, ' ')
  const arrival = receiver.arrival(body)
  const headers = messageHeaders(bench)
  await Promise.all([arrival, queue.send({ method: 'POST', path: `/v2/publish/${receiver.hook}`, body, headers })])
}

const messageHeaders = ({ label }: Pick<Bench, 'label'>) => ({
  'content-type': 'text/plain',
  'upstash-label': label,
  'upstash-retries': '0',
})

/**
 * Waits for one delivery.
 * @throws HomeportError `cli_misused` when it does not arrive: the server cannot reach this program.
 */
async function checkReachable(bench: Bench): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unreachableReceiver(bench)), REACHED_WITHIN_MS)
  })
  await Promise.race([delivered(bench, 'first'), late]).finally(() => clearTimeout(timer))
}

function unreachableReceiver({ receiver }: Bench): HomeportError {
  const problem = `The server did not deliver to ${receiver.hook} within ${REACHED_WITHIN_MS / 1_000} seconds. Choose with --receiver an address of this machine that the server reaches and may contact.`
  return misused(problem)
}

async function cancelPending({ session, label }: Bench): Promise<void> {
  await session.api.call(cancelMessages, { query: { label: [label] } })
}
