import type { IncomingHttpHeaders } from 'node:http'
import type { Static } from 'typebox'
import { auditRow } from '../../accounts/index.js'
import { type Clock, newId } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { restartRun } from '../../contract/workflow/restart.js'
import { type Caller, type Route, route } from '../../http/index.js'
import { type Queue, quotaOf, type SettingLimits } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { WorkflowMeter } from '../../telemetry/index.js'
import { newRunOf, openingRole, overridesOf, settingsIn } from '../dead-letters/revival.js'
import { failureOf } from '../logs/log-runs.js'
import { INLINE_LIMIT_BYTES } from '../protocol/outbound.js'
import { inRole, newRunIdOf } from '../protocol/settings.js'
import * as runsRead from '../transactions/runs-read.js'
import * as runsRestart from '../transactions/runs-restart.js'
import { revised } from '../transactions/runs-revive.js'
import type { ElementMeta, NewElement, RunOrigin } from '../transactions/runs-rows.js'
import { metaOfTrigger } from './columns.js'
import type { RecentLists } from './recent-lists.js'
import { editedResults, planRestart } from './restart-plan.js'
import type { TriggerGate } from './trigger-gate.js'

/** Collaborators of the restart route. */
export interface RestartDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'refuseForbidden'>
  readonly clock: Clock
  readonly limits: SettingLimits
  /** Decides whether the new run may start. */
  readonly gate: TriggerGate
  readonly lists: Pick<RecentLists, 'idReused'>
  /** A larger list is not restarted. Default `INLINE_LIMIT_BYTES`. */
  readonly inlineLimitBytes?: number | undefined
  readonly meter: Pick<WorkflowMeter, 'started' | 'activity'>
}

type Answer = Static<typeof restartRun.success.body>
type Body = Static<typeof restartRun.body.schema>

interface Asked {
  readonly runId: string
  readonly body: Body
  readonly headers: IncomingHttpHeaders
  readonly caller: Caller
}

/** The route that restarts a run from one of its steps. */
export function restartRoutes(deps: RestartDeps): Route[] {
  return [
    route(restartRun, ({ params, body, headers, caller }) =>
      restart(deps, { runId: params.workflowRunId, body, headers, caller }),
    ),
  ]
}

async function restart(deps: RestartDeps, asked: Asked): Promise<Answer> {
  const { store, queue, clock, gate, lists, meter } = deps
  const { accountId } = asked.caller
  const at = clock.now()
  const args = await prepare(deps, asked, at)
  queue.refuseForbidden([args.run.url], settingsIn(asked.headers))
  const { made, createdAt, offers } = await gate.pass(accountId, [args.run], at, (paused) =>
    store.run(runsRestart.restartRun, { ...args, paused }),
  )
  const answer = { workflowRunId: args.run.run_id, workflowCreatedAt: createdAt }
  if (!made) return { ...answer, deduplicated: true }
  lists.idReused(accountId, args.run.run_id)
  meter.started++
  meter.activity.add(accountId, 'started_runs')
  queue.offer(offers)
  return answer
}

/** Reads and plans outside the transaction. That is safe, because elements never change after they are appended. */
async function prepare(
  { store, limits, inlineLimitBytes = INLINE_LIMIT_BYTES }: RestartDeps,
  { runId, body, headers, caller }: Asked,
  at: number,
): Promise<runsRestart.RestartRunArgs> {
  const { accountId } = caller
  // Invalid settings are refused first.
  const overrides = overridesOf(headers, at, limits)
  const newRunId = givenRunId(headers)
  refuseLarge(runId, await store.run(runsRead.listBytes, { accountId, runId }), inlineLimitBytes)
  const found = await store.run(runsRead.withElements, { accountId, runId })
  if (!found) throw new HomeportError('run_not_found', { runId })
  const { run: original, elements } = found
  const { fromStep, payload, siblings = 'keep' } = body
  const results = editedResults(body.results)
  const plan = await planRestart(runId, elements, { fromStep, payload, results, siblings }, overrides.dueAt)
  const { rule: _, ...before } = metaOfTrigger(elements[0]?.meta)
  const delivery = revised(before.delivery, overrides.revision)
  const { failureCallback = before.failureCallback } = overrides
  const origin: RunOrigin = { workflowRunId: runId, workflowRunCreatedAt: original.created_at, stepId: fromStep }
  const meta: ElementMeta = { ...before, delivery, ...(failureCallback && { failureCallback }), origin }
  const run = { ...newRunOf(original, delivery, at), ...(newRunId !== undefined && { run_id: newRunId }) }
  const opening = inRole(delivery, openingRole({ ...original, reason: failureOf(original)?.reason ?? null }, delivery))
  const step = { kind: 'step' as const, dueAt: overrides.dueAt }
  const list: NewElement[] = [
    { ...step, messageId: newId('msg_', at), body: plan.payload, meta: JSON.stringify(meta), delivery: opening },
    ...plan.kept.map((kept): NewElement => ({ ...step, messageId: newId('msg_', at), ...kept })),
  ]
  const delivered = plan.kept.length > 0 ? list.filter((_, at) => plan.kept[at - 1]?.dueAt !== undefined) : list
  const details = {
    from: runId,
    step: fromStep,
    ...(payload !== undefined && { payload: 'replaced' }),
    ...(results.size > 0 && { results: [...results.keys()] }),
  }
  return {
    accountId,
    run,
    elements: list,
    delivered: delivered.map(({ messageId }) => messageId),
    audit: auditRow(caller, { action: 'Restart Workflow Runs', entity: run.run_id, details }, at),
    quota: quotaOf(caller),
    at,
  }
}

/** Limits the size of the list, because it is read, changed and stored as a whole. */
function refuseLarge(runId: string, bytes: number, most: number): void {
  if (bytes <= most) return
  const problem = `its payload and steps take ${bytes} bytes, and the limit is ${most}. Trigger a new run`
  throw new HomeportError('restart_refused', { runId, problem })
}

/** The id that the caller chose for the new run. */
function givenRunId(headers: IncomingHttpHeaders): string | undefined {
  const settings = settingsIn(headers)
  if (settings['upstash-workflow-runid'] === undefined) return undefined
  return newRunIdOf({ destination: '', headers: settings, body: undefined })
}
