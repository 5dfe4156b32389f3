import { storedConfig } from '../../queue/index.js'
import type { FailureState } from '../../store/schema/runs.js'
import { errorText, thrownMessage } from '../protocol/error-text.js'
import { type AttemptRecord, type FailureRecord, storedFailure, storedLink } from '../runs/columns.js'
import type { RunLogPage } from '../transactions/runs-logs.js'
import { storedPause } from '../transactions/runs-pause.js'
import type { RunRow } from '../transactions/runs-rows.js'
import { becauseOf, type WaitingRun } from './because.js'
import { type FailedStep, stepGroups } from './log-steps.js'
import { abandonedBranches, type RunLogData, runLogDataOf, subjectOf } from './run-log-data.js'
import { type AttemptError, attemptError, trim } from './step-fields.js'
import { timeOfFailure } from './step-time.js'

/** Parameters of a log page. */
export interface LogView {
  /** Bodies and results are cut to this many characters. */
  readonly trimTo: number
  readonly now: number
  /** Start of the attempt in flight of a message, by `messages.seq`. */
  readonly inFlightSince: WaitingRun['inFlightSince']
  /** The limit of a flow-control key of the account that is reached. */
  readonly holdOf: WaitingRun['holdOf']
}

/** The logs of a page of runs (reference workflow 4.14). */
export async function runLogs(page: RunLogPage, view: LogView): Promise<Record<string, unknown>[]> {
  const logs: Record<string, unknown>[] = []
  for (const run of page.runs) {
    const material = await runLogDataOf(run, page, view)
    const because = run.state === 'RUN_STARTED' && {
      because: await becauseOf(waitingRunOf(run, material, page, view)),
    }
    logs.push({
      ...(await runLog(run, material)),
      ...pausedOf(run),
      ...cancelledBy(run, page),
      ...replacedBy(run, page),
      ...broughtBack(run, page),
      ...because,
    })
  }
  return logs
}

const pauseOf = ({ state, paused_at: at, pause }: RunRow): WaitingRun['pause'] =>
  state === 'RUN_STARTED' && at !== null ? { at, ...storedPause(pause) } : undefined

function pausedOf(run: RunRow): object {
  const pause = pauseOf(run)
  return pause ? { paused: pause } : {}
}

function cancelledBy({ canceled_by }: RunRow, { cancels }: RunLogPage): object {
  const action = cancels.find(({ seq }) => seq === canceled_by)
  if (!action) return {}
  const { action_id: actionId, actor, reason } = action
  return { canceledBy: { actionId, actor, ...(reason !== null && { reason }) } }
}

function replacedBy({ replaced_by }: RunRow, { successors }: RunLogPage): object {
  const successor = successors.find(({ seq }) => seq === replaced_by)
  if (!successor) return {}
  return { replacedBy: { workflowRunId: successor.run_id, workflowRunCreatedAt: successor.created_at } }
}

function broughtBack({ seq }: RunRow, { returns }: RunLogPage): object {
  const last = returns.findLast(({ run_seq }) => run_seq === seq)
  if (!last) return {}
  const { cancelled_at: cancelledAt, returned_at: at, action_id: actionId, actor, reason } = last
  return {
    broughtBack: {
      cancelledAt,
      at,
      ...(actionId !== null && actor !== null && { actionId, actor }),
      ...(reason !== null && { reason }),
    },
  }
}

function waitingRunOf(
  run: RunRow,
  material: RunLogData,
  page: RunLogPage,
  { inFlightSince, holdOf }: LogView,
): WaitingRun {
  const { elements, invoked } = material
  return {
    ...material,
    inFlightSince,
    holdOf,
    invoked: invoked.filter(({ state }) => state === 'RUN_STARTED'),
    flowPlaces: page.flowPlaces,
    upcomingCancels: page.upcomingCancels.filter(({ run_seq }) => run_seq === run.seq),
    abandonedBranches: abandonedBranches(material),
    subjectOf: (messageId) => subjectOf(material, messageId),
    debounced: debouncedBy(material),
    createdAt: run.created_at,
    pause: pauseOf(run),
    lastElementAt: elements.at(-1)?.created_at,
  }
}

/** The debounce key for which the first delivery of a run waits. */
function debouncedBy({ rule, elements }: RunLogData): WaitingRun['debounced'] {
  const [first] = elements
  return rule?.kind === 'debounce' && first ? { key: rule.key, messageId: first.message_id } : undefined
}

async function runLog(run: RunRow, material: RunLogData): Promise<Record<string, unknown>> {
  const labels = labelsOf(run)
  const failure = failureOf(run)
  const { priority } = storedConfig(material.delivery?.config)
  return {
    workflowRunId: run.run_id,
    workflowUrl: run.url,
    workflowState: run.state,
    workflowRunCreatedAt: run.created_at,
    ...(run.finished_at !== null && { workflowRunCompletedAt: run.finished_at }),
    workflowRunCallerIp: run.caller_ip,
    ...(run.response !== null && { workflowRunResponse: trim(run.response, material.trimTo) }),
    ...(run.dlq_id !== null && { dlqId: run.dlq_id }),
    ...(labels.length > 0 && { label: labels[0], labels }),
    ...(run.flow_key !== null && { flowControlKey: run.flow_key }),
    ...(priority !== undefined && { priority }),
    ...(material.rule?.kind === 'debounce' && { debounceKey: material.rule.key }),
    ...(material.rule?.kind === 'singleton' && { singletonKey: material.rule.key }),
    ...(material.origin && { origin: { ...material.origin } }),
    ...(run.parent !== null && { invoker: invokerOf(run.parent) }),
    ...(failure && run.failure_state !== null && { failureFunction: failureFunction(failure, run, material) }),
    steps: await stepGroups(material, failure && failedStep(failure, material)),
  }
}

/** The failure of a failed run. */
export function failureOf(run: RunRow): FailureRecord | undefined {
  return run.failure === null ? undefined : storedFailure(run.failure)
}

/** The labels of a run. */
export function labelsOf(run: Pick<RunRow, 'labels'>): string[] {
  return run.labels.split('|').filter((label) => label !== '')
}

function invokerOf(parent: string): object {
  const link = storedLink(parent)
  return { workflowRunId: link.runId, workflowUrl: link.url, workflowRunCreatedAt: link.createdAt }
}

function failedStep(failure: FailureRecord, material: RunLogData): FailedStep {
  const { messageId, stepName, maxRetries: retries, attempts = [] } = failure
  const errors = errorViews([...attempts, failure], material.trimTo)
  const time = timeOfFailure(failure)
  return {
    view: {
      messageId,
      ...(stepName !== undefined && { stepName }),
      state: 'STEP_FAILED',
      retries,
      errors,
      ...(time && { time }),
    },
    stepId: subjectOf(material, messageId).stepId,
  }
}

/** Oldest failure first. */
function errorViews(attempts: readonly AttemptRecord[], trimTo: number): AttemptError[] {
  return attempts.toSorted((one, other) => one.time - other.time).map((attempt) => errorView(attempt, trimTo))
}

function errorView(attempt: AttemptRecord, trimTo: number): AttemptError {
  const { status, headers, time } = attempt
  const body = Buffer.from(attempt.body, 'base64')
  return { error: errorText({ ...attempt, body }), status, headers, body: trim(body.toString(), trimTo), time }
}

function failureFunction(failure: FailureRecord, run: RunRow, material: RunLogData): object {
  const { trimTo } = material
  const state: FailureState | null = run.failure_state
  const { callback } = failure
  const answered = callback?.status !== undefined
  return {
    messageId: callback?.messageId,
    url: callback?.url,
    state,
    failStatus: failure.status,
    failResponse: trim(messageOf(failure), trimTo),
    failHeaders: failure.headers,
    ...(run.dlq_id !== null && { dlqId: run.dlq_id }),
    ...(callback?.attempts?.length && { errors: errorViews(callback.attempts, trimTo) }),
    ...pendingCallOf(callback?.messageId, material),
    ...(answered && {
      responseStatus: callback.status,
      responseBody: trim(fromBase64(callback.body ?? ''), trimTo),
      responseHeaders: callback.headers,
      maxRetries: callback.maxRetries,
    }),
  }
}

/** Fields of a failure function whose call is pending. */
function pendingCallOf(messageId: string | undefined, { pendingOf, attemptsOf, trimTo }: RunLogData): object {
  const message = messageId === undefined ? undefined : pendingOf.get(messageId)
  if (!message) return {}
  const errors = (attemptsOf.get(message.seq) ?? []).map((one) => attemptError(one, trimTo))
  return { ...(errors.length > 0 && { errors }), maxRetries: message.max_retries, nextDeliveryTime: message.next_at }
}

/** The message that the program has thrown, else the whole body of the response. */
function messageOf({ body }: FailureRecord): string {
  return thrownMessage(Buffer.from(body, 'base64')) ?? fromBase64(body)
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString()
}
