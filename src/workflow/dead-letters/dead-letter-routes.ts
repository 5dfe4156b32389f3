import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  cancelRunCallback,
  deleteDeadRun,
  deleteDeadRunByVerb,
  deleteDeadRuns,
  getDeadRun,
  listDeadRuns,
  restartDeadRun,
  restartDeadRuns,
  resumeDeadRun,
  resumeDeadRuns,
  retryRunCallback,
} from '../../contract/workflow/dead-letters.js'
import { type Caller, type Route, route } from '../../http/index.js'
import {
  bodyMembers,
  type DeadLetterSource,
  type DeadLetterView,
  type Queue,
  redactHeaders,
  type SettingLimits,
  storedConfig,
  storedHeaders,
  trimBodies,
} from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { WorkflowMeter } from '../../telemetry/index.js'
import { failureOf, labelsOf } from '../logs/log-runs.js'
import { type FailureRecord, metaOfElement } from '../runs/columns.js'
import type { TriggerGate } from '../runs/trigger-gate.js'
import type { CallbackChange } from '../transactions/runs-callbacks.js'
import * as runsCallbacks from '../transactions/runs-callbacks.js'
import type { DeadRunPage, DeadRunSelector } from '../transactions/runs-dead.js'
import * as runsDead from '../transactions/runs-dead.js'
import type { DeadLetterRow } from '../transactions/runs-dead-list.js'
import * as runsDeadList from '../transactions/runs-dead-list.js'
import * as runsRevive from '../transactions/runs-revive.js'
import type { RunRow } from '../transactions/runs-rows.js'
import { cursorOf, type DeadQuery, onlyLetter, selectorOf } from './dead-letter-filter.js'
import { overridesOf, type RevivalKind, revivalOf, settingsIn } from './revival.js'

/** Collaborators of the routes for dead letters of runs. */
export interface DeadLetterDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'dropEverywhere' | 'refuseForbidden'>
  readonly clock: Clock
  readonly limits: SettingLimits
  /** Counts the runs that these routes start. */
  readonly meter: Pick<WorkflowMeter, 'activity'>
  /** Decides whether resumed and restarted runs may start. */
  readonly gate: TriggerGate
}

interface NewRun {
  readonly workflowRunId: string
  readonly workflowCreatedAt: number
}

/** Routes of the dead letters of runs (reference workflow 4.13). */
export function deadLetterRoutes(deps: DeadLetterDeps): Route[] {
  return [...readingRoutes(deps), ...deletingRoutes(deps), ...revivingRoutes(deps), ...callbackRoutes(deps)]
}

/** Maximum reads of one request until it finds a letter. */
const MAX_READS = 5

/** Reads pages until one has letters, up to a limit. Then the answer is empty and has a cursor. */
async function untilFound<Page extends Pick<DeadRunPage, 'next'> & { readonly runs: readonly unknown[] }>(
  selector: DeadRunSelector,
  read: (selector: DeadRunSelector) => Promise<Page>,
): Promise<Page> {
  let page = await read(selector)
  for (let reads = 1; page.runs.length === 0 && page.next && reads < MAX_READS; reads++) {
    page = await read({ ...selector, after: page.next })
  }
  return page
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
  const remove = (selector: DeadRunSelector) => untilFound(selector, (one) => store.run(runsDead.deleteDeadRuns, one))
  return [
    route(deleteDeadRuns, async ({ caller, query, body }) => {
      const selector = selectorOf(caller.accountId, { ...query, ...body })
      if (!selector) return { deleted: 0 }
      const page = await remove(selector)
      return { deleted: page.runs.length, ...cursorOf(page) }
    }),
    ...[deleteDeadRun, deleteDeadRunByVerb].map((endpoint) =>
      route(endpoint, async ({ caller, params: { dlqId } }) => {
        const { runs } = await remove(onlyLetter(caller.accountId, dlqId))
        if (runs.length === 0) throw new HomeportError('dead_letter_not_found', { dlqId })
        return { deleted: runs.length }
      }),
    ),
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
  { store, queue, clock, limits, gate, meter }: DeadLetterDeps,
  kind: RevivalKind,
  selector: DeadRunSelector | undefined,
  headers: IncomingHttpHeaders,
): Promise<{ workflowRuns: NewRun[]; cursor?: string }> {
  const at = clock.now()
  // Invalid settings are refused even if no dead letter matches.
  const overrides = overridesOf(headers, at, limits)
  queue.refuseForbidden([], settingsIn(headers))
  if (!selector) return { workflowRuns: [] }
  const page = await untilFound(selector, (one) => store.run(runsRevive.revivable, one))
  const revivals = page.runs.map((dead) => revivalOf(kind, dead, overrides, at))
  const args = { accountId: selector.accountId, revivals, dueAt: overrides.dueAt, at }
  const starting = revivals.map((revival) => revival.run)
  const { revived, offers } = await gate.pass(selector.accountId, starting, at, (paused) =>
    store.run(runsRevive.revive, { ...args, paused }),
  )
  meter.activity.add(selector.accountId, 'started_runs', revived.length)
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
      await queue.dropEverywhere({ groupKeys: [run.seq] })
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

/** A page of failed runs. */
export interface DeadLetterPage {
  readonly messages: RunDeadLetter[]
  readonly cursor?: string
  readonly searchedTo?: number
}

/** Failed runs, as the dead letters that SDKs list with `source=workflow` (reference workflow 4.13). */
export class RunDeadLetters implements DeadLetterSource {
  readonly name = 'workflow'
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  async list({ accountId }: Caller, query: DeadQuery): Promise<DeadLetterPage> {
    const selector = selectorOf(accountId, query)
    if (!selector) return { messages: [] }
    const page = await untilFound(selector, (one) => this.#store.run(runsDeadList.listDead, one))
    const most = typeof query.trimBody === 'number' ? query.trimBody : undefined
    const messages = page.runs.map((run) => trimBodies(deadLetterOf(run), most))
    const isShort = page.next !== undefined && messages.length < selector.limit
    return { messages, ...cursorOf(page), ...(isShort && { searchedTo: page.next.at }) }
  }
}

/** A dead letter with the fields of runs. */
export interface RunDeadLetter extends DeadLetterView {
  readonly workflowRunId: string
  readonly workflowUrl: string
  readonly workflowCreatedAt: number
  readonly failureCallback?: string
  readonly failureCallbackInfo?: object
}

/** Builds the view of a failed run. */
export function deadLetterOf(run: DeadLetterRow): RunDeadLetter {
  const failure = failureOf(run)
  const { status = 0, headers = {}, body = '', messageId = '', maxRetries = 0, callback } = failure ?? {}
  const labels = labelsOf(run)
  const { delivery } = metaOfElement(run.meta)
  const config = storedConfig(delivery?.config)
  const header = redactHeaders(storedHeaders(delivery?.headers), config.redact)
  return {
    messageId,
    url: run.url,
    method: 'POST',
    header: Object.fromEntries(Object.entries(header).map(([name, values]) => [name, [...values]])),
    // SDKs require a string here, even for a run without a payload.
    ...(run.payload?.byteLength ? bodyMembers(run.payload, config) : { body: '' }),
    maxRetries,
    notBefore: run.created_at,
    createdAt: run.created_at,
    callerIP: run.caller_ip,
    dlqId: run.dlq_id ?? '',
    responseStatus: status,
    responseHeader: Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]])),
    responseBody: Buffer.from(body, 'base64').toString(),
    ...(labels[0] !== undefined && { label: labels[0], labels }),
    ...(run.flow_key !== null && { flowControlKey: run.flow_key }),
    workflowRunId: run.run_id,
    workflowUrl: run.url,
    workflowCreatedAt: run.created_at,
    // Without a state, the program has no failure function.
    ...(callback &&
      run.failure_state !== null && {
        failureCallback: callback.url,
        failureCallbackInfo: callbackInfo(run, callback),
      }),
  }
}

function callbackInfo(run: RunRow, callback: NonNullable<FailureRecord['callback']>): object {
  return {
    state: run.failure_state,
    ...(callback.status !== undefined && {
      responseStatus: callback.status,
      responseBody: Buffer.from(callback.body ?? '', 'base64').toString(),
      responseHeaders: callback.headers,
    }),
  }
}
