import { auditRow } from '../../accounts/index.js'
import type { Clock } from '../../base/index.js'
import type { AuditAction } from '../../contract/accounts/audit.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { pauseRun, unpauseRun } from '../../contract/workflow/pause.js'
import { type Caller, type Route, route } from '../../http/index.js'
import type { Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import * as runsPause from '../transactions/runs-pause.js'
import * as runsRead from '../transactions/runs-read.js'

/** Collaborators of the routes that pause and resume a run. */
export interface PauseDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'dropEverywhere'>
  readonly clock: Clock
}

/** The routes that pause and resume a run. */
export function pauseRoutes(deps: PauseDeps): Route[] {
  return [
    route(pauseRun, ({ params, body, caller }) => pause(deps, caller, params.workflowRunId, body ?? {})),
    route(unpauseRun, ({ params, caller }) => resume(deps, caller, params.workflowRunId)),
  ]
}

async function pause(
  { store, queue, clock }: PauseDeps,
  caller: Caller,
  runId: string,
  { clock: pauseClock = 'keep', reason }: { clock?: runsPause.PauseClock; reason?: string },
) {
  const pause = { by: caller.email, clock: pauseClock, ...(reason !== undefined && { reason }) }
  const details = { clock: pauseClock, ...(reason !== undefined && { reason }) }
  const args = argsOf(caller, runId, { action: 'Pause Workflow Runs', details, at: clock.now() })
  const result = await store.run(runsPause.pauseRun, { ...args, pause })
  if (result.kind === 'missing' || result.kind === 'ended') throw refusal(runId, result)
  // Awaited before the answer, even if the run was paused already: the node that paused it may have died before its drop.
  await queue.dropEverywhere({ groupKeys: [result.runSeq], inFlight: 'ends' })
  if (result.kind === 'paused') return { workflowRunId: runId, paused: { at: result.pausedAt, ...pause } }
  const run = await store.run(runsRead.find, { accountId: caller.accountId, runId })
  return { workflowRunId: runId, paused: { at: result.pausedAt, ...runsPause.storedPause(run?.pause ?? null) } }
}

async function resume({ store, queue, clock }: PauseDeps, caller: Caller, runId: string) {
  const args = argsOf(caller, runId, { action: 'Resume Paused Workflow Runs', details: {}, at: clock.now() })
  const result = await store.run(runsPause.resumeRun, args)
  switch (result.kind) {
    case 'missing':
    case 'ended':
      throw refusal(runId, result)
    case 'already':
      return { workflowRunId: runId }
    case 'resumed':
      queue.offer(result.offers, true)
      return { workflowRunId: runId, pausedAt: result.pausedAt }
  }
}

function argsOf(
  caller: Caller,
  runId: string,
  { action, details, at }: { action: AuditAction; details: Record<string, unknown>; at: number },
): runsPause.PausingArgs {
  return { accountId: caller.accountId, runId, at, audit: auditRow(caller, { action, entity: runId, details }, at) }
}

type Refused = Extract<runsPause.PauseRunResult, { kind: 'missing' | 'ended' }>

const refusal = (runId: string, refused: Refused): HomeportError =>
  refused.kind === 'missing'
    ? new HomeportError('run_not_found', { runId })
    : new HomeportError('run_not_pausable', { runId, state: refused.state })
