import type { Random } from '../../../base/testing/random.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import type { Call, Caller } from '../../../http/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import { ActivityMeter } from '../../../telemetry/index.js'
import { restartRoutes } from '../../runs/restart-routes.js'
import type { TriggerGate } from '../../runs/trigger-gate.js'
import * as runsRead from '../../transactions/runs-read.js'
import type { ElementRow, RunRow } from '../../transactions/runs-rows.js'
import type { Knowledge } from './knowledge.js'
import { firstResults, type ListedStep } from './program.js'
import { checkStanding, standingsOf } from './standings.js'

/** Collaborators of a restart. */
export interface RestartMoveDeps {
  readonly store: Store
  readonly random: Random
  readonly caller: Caller
  readonly known: Knowledge
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly gate: TriggerGate
}

/**
 * Restarts a run from some step, as a caller does. The original must stay as it is, and the new run must begin with exactly
 * the results of the earlier steps.
 */
export async function restartSome(deps: RestartMoveDeps, run: RunRow): Promise<void> {
  const { store, random, caller, known } = deps
  const read = (runId: string) => store.run(runsRead.withElements, { accountId: caller.accountId, runId })
  const before = await read(run.run_id)
  const standing = (await standingsOf(store, [run])).get(run.seq)
  if (!before || !standing) return
  const steps = stepsOf(before.elements)
  const results = firstResults(steps)
  const fromStep = 1 + random.below(Math.max(1, ...results.keys()) + 1)
  const runId = await restart(deps, run, fromStep)
  if (runId === undefined) {
    const isComplete = idsBelow(fromStep).every((id) => results.has(id))
    if (isComplete) throw new Error(`${run.run_id} was not restarted from step ${fromStep}, and has all results before`)
    return
  }
  const after = await read(run.run_id)
  if (JSON.stringify(after?.run) !== JSON.stringify(before.run)) throw new Error(`a restart changed ${run.run_id}`)
  const left = (await standingsOf(store, [run])).get(run.seq)
  if (left) checkStanding(run, standing, left, { by: 'nothing' })
  const elements = (await read(runId))?.elements ?? []
  const kept = firstResults(stepsOf(elements))
  checkKept(runId, fromStep, { kept, results, group: new Set(steps.map(({ targetStep }) => targetStep)) })
  const expected = known.run(runId)
  for (const { message_id } of elements) expected.accepted.add(message_id)
  expected.kept = kept
}

/** Sends the request. @returns the id of the new run; `undefined` if the restart was refused. */
async function restart({ store, caller, now, offer, gate }: RestartMoveDeps, run: RunRow, fromStep: number) {
  const [handle] = restartRoutes({
    store,
    queue: { offer, refuseForbidden: () => undefined },
    clock: { now, after: neverCalled },
    limits: { timeoutMs: 900_000 },
    gate,
    lists: { idReused: () => undefined },
    meter: { started: 0, activity: new ActivityMeter(now) },
  })
  const call = { params: { workflowRunId: run.run_id }, body: { fromStep }, headers: {}, caller }
  try {
    // The route reads nothing else of a call.
    const made = (await handle?.handler(call as unknown as Call)) as { workflowRunId: string } | undefined
    return made?.workflowRunId
  } catch (error) {
    if (error instanceof HomeportError && error.code === 'restart_refused') return undefined
    throw error
  }
}

type Results = ReadonlyMap<number, string | undefined>

interface Kept {
  readonly kept: Results
  readonly results: Results
  /** The steps of the original that are parallel branches. */
  readonly group: ReadonlySet<number | undefined>
}

function checkKept(runId: string, fromStep: number, { kept, results, group }: Kept): void {
  for (const [id, out] of kept) {
    if (out !== results.get(id)) throw new Error(`${runId} keeps another result of step ${id}`)
    if (id === fromStep) throw new Error(`${runId} keeps the result of step ${id}, which it was to execute`)
  }
  const lost = idsBelow(fromStep).filter((id) => results.has(id) && !kept.has(id) && !group.has(id))
  if (lost.length > 0) throw new Error(`${runId} has lost the results of steps ${lost}`)
}

const neverCalled = (): never => {
  throw new Error('a restart waits for nothing')
}

const idsBelow = (end: number): number[] => Array.from({ length: end - 1 }, (_, index) => index + 1)

/** The steps of a list without the payload. */
const stepsOf = (elements: readonly ElementRow[]): ListedStep[] =>
  elements
    .filter(({ kind, position }) => kind === 'step' && position > 0)
    // Written by the simulated endpoint, or by the server from its requests.
    .map(({ body }) => JSON.parse(new TextDecoder().decode(body)) as ListedStep)
