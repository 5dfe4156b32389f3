import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  cancelRunCallback,
  deleteDeadRun,
  deleteDeadRuns,
  getDeadRun,
  listDeadRuns,
  restartDeadRun,
  restartDeadRuns,
  resumeDeadRun,
  resumeDeadRuns,
  retryRunCallback,
} from '../../contract/workflow/dead-letters.js'
import { type Route, route } from '../../http/index.js'
import type { Queue, SettingLimits } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { TriggerGate } from '../runs/gate.js'
import type { CallbackChange } from '../transactions/runs-callbacks.js'
import * as runsCallbacks from '../transactions/runs-callbacks.js'
import type { DeadRunSelector } from '../transactions/runs-dead.js'
import * as runsDead from '../transactions/runs-dead.js'
import * as runsDeadList from '../transactions/runs-dead-list.js'
import * as runsRevive from '../transactions/runs-revive.js'
import { cursorOf, onlyLetter, selectorOf } from './dead-letter-filter.js'
import { deadLetterOf, RunDeadLetters } from './dead-letters.js'
import { overridesOf, type RevivalKind, revivalOf, settingsIn } from './revival.js'

/** What dead letters of runs work with. */
export interface DeadLetterDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'drop' | 'refuseForbidden'>
  readonly clock: Clock
  readonly limits: SettingLimits
  /** Decides whether what is taken up again may start. */
  readonly gate: TriggerGate
}

interface NewRun {
  readonly workflowRunId: string
  readonly workflowCreatedAt: number
}

/** Dead letters of runs (reference workflow 4.13). */
export function deadLetterRoutes(deps: DeadLetterDeps): Route[] {
  return [...readingRoutes(deps), ...deletingRoutes(deps), ...revivingRoutes(deps), ...callbackRoutes(deps)]
}

function readingRoutes({ store }: DeadLetterDeps): Route[] {
  const letters = new RunDeadLetters(store)
  return [
    route(listDeadRuns, ({ caller, query }) => letters.list(caller, query)),
    route(getDeadRun, async ({ caller, params: { dlqId } }) => {
      const { runs } = await store.run(runsDeadList.listDead, onlyLetter(caller.accountId, dlqId))
      const [run] = runs
      if (!run) throw new HomeportError('dead_letter_not_found', { dlqId })
      return deadLetterOf(run)
    }),
  ]
}

function deletingRoutes({ store }: DeadLetterDeps): Route[] {
  const remove = (selector: DeadRunSelector) => store.run(runsDead.deleteDeadRuns, selector)
  return [
    route(deleteDeadRuns, async ({ caller, query, body }) => {
      const selector = selectorOf(caller.accountId, { ...query, ...body })
      if (!selector) return { deleted: 0 }
      const page = await remove(selector)
      return { deleted: page.runs.length, ...cursorOf(page) }
    }),
    route(deleteDeadRun, async ({ caller, params: { dlqId } }) => {
      const { runs } = await remove(onlyLetter(caller.accountId, dlqId))
      if (runs.length === 0) throw new HomeportError('dead_letter_not_found', { dlqId })
      return { deleted: runs.length }
    }),
  ]
}

function revivingRoutes(deps: DeadLetterDeps): Route[] {
  const many = (endpoint: typeof resumeDeadRuns, kind: RevivalKind) =>
    route(endpoint, ({ caller, query, body, headers }) =>
      revive(deps, kind, selectorOf(caller.accountId, { ...query, ...body }), headers),
    )
  const one = (endpoint: typeof resumeDeadRun, kind: RevivalKind) =>
    route(endpoint, async ({ caller, params: { dlqId }, headers }) => {
      const [run] = (await revive(deps, kind, onlyLetter(caller.accountId, dlqId), headers)).workflowRuns
      if (!run) throw new HomeportError('dead_letter_not_found', { dlqId })
      return run
    })
  return [
    many(resumeDeadRuns, 'resume'),
    many(restartDeadRuns, 'restart'),
    one(resumeDeadRun, 'resume'),
    one(restartDeadRun, 'restart'),
  ]
}

async function revive(
  { store, queue, clock, limits, gate }: DeadLetterDeps,
  kind: RevivalKind,
  selector: DeadRunSelector | undefined,
  headers: IncomingHttpHeaders,
): Promise<{ workflowRuns: NewRun[]; cursor?: string }> {
  const at = clock.now()
  // Wrong settings are refused also when there is nothing to do.
  const overrides = overridesOf(headers, at, limits)
  queue.refuseForbidden([], settingsIn(headers))
  if (!selector) return { workflowRuns: [] }
  const page = await store.run(runsRevive.revivable, selector)
  const revivals = page.runs.map((dead) => revivalOf(kind, dead, overrides, at))
  const args = { accountId: selector.accountId, revivals, dueAt: overrides.dueAt, at }
  const starting = revivals.map((revival) => revival.run)
  const revive = () => store.run(runsRevive.revive, args)
  const { revived, offers } = await gate.pass(selector.accountId, starting, at, revive)
  queue.offer(offers)
  const workflowRuns = revived.map(({ runId }) => ({ workflowRunId: runId, workflowCreatedAt: at }))
  return { workflowRuns, ...cursorOf(page) }
}

function callbackRoutes({ store, queue, clock }: DeadLetterDeps): Route[] {
  return [
    route(retryRunCallback, async ({ caller: { accountId }, params: { dlqId } }) => {
      const result = await store.run(runsCallbacks.retryCallback, { accountId, dlqId, at: clock.now() })
      const { run, offers } = changedOf(result, dlqId, 'CALLBACK_FAIL')
      queue.offer(offers)
      return { workflowRunId: run.run_id, workflowCreatedAt: run.created_at }
    }),
    route(cancelRunCallback, async ({ caller: { accountId }, params: { dlqId } }) => {
      const result = await store.run(runsCallbacks.cancelCallback, { accountId, dlqId, at: clock.now() })
      const { run } = changedOf(result, dlqId, 'CALLBACK_INPROGRESS')
      queue.drop({ groupKeys: [run.seq] })
      return { workflowRunId: run.run_id, workflowCreatedAt: run.created_at }
    }),
  ]
}

function changedOf(result: CallbackChange, dlqId: string, needed: string) {
  switch (result.kind) {
    case 'changed':
      return result
    case 'missing':
      throw new HomeportError('dead_letter_not_found', { dlqId })
    case 'refused': {
      const { run_id: runId, failure_state } = result.run
      throw new HomeportError('callback_refused', { runId, state: failure_state ?? 'no failure function', needed })
    }
  }
}
