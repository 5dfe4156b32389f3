import { mapInSlices } from '../../base/index.js'
import { dueOf, type FlowHold, storedConfig, storedHeaders } from '../../queue/index.js'
import { thrownMessage } from '../protocol/error-text.js'
import { linkOf } from '../protocol/sent-steps.js'
import type { FlowPlace, InvokedRun, PendingAttempt, PendingStep } from '../transactions/runs-logs.js'
import type { RunPause } from '../transactions/runs-pause.js'
import type { UpcomingCancel } from '../transactions/runs-upcoming.js'
import type { WaitRow } from '../transactions/runs-wait.js'
import { type Because, type Cause, inWords, type Reason, type StepName } from './reason.js'
import { type Subject, stepOfWait } from './run-log-data.js'

/** The data from which the reasons of one run are derived. */
export interface WaitingRun {
  readonly now: number
  readonly createdAt: number
  /** Set while the run is paused. */
  readonly pause: (RunPause & { readonly at: number }) | undefined
  /** When the last element was appended. */
  readonly lastElementAt: number | undefined
  readonly pending: readonly PendingStep[]
  readonly attempts: readonly PendingAttempt[]
  readonly waits: readonly WaitRow[]
  /** Active runs that this one has invoked. */
  readonly invoked: readonly InvokedRun[]
  readonly flowPlaces: readonly FlowPlace[]
  /** Planned parallel branches without a result for which nothing is pending. */
  readonly abandonedBranches: readonly string[]
  /** Bulk actions that will cancel it. */
  readonly upcomingCancels: readonly UpcomingCancel[]
  readonly subjectOf: (messageId: string) => Subject
  /** Its first delivery, if it waits for newer triggers with a debounce key. */
  readonly debounced?: { readonly key: string; readonly messageId: string } | undefined
  readonly inFlightSince: (seq: number) => number | undefined
  /** The limit of a flow-control key that is reached. */
  readonly holdOf: (flowKey: string) => FlowHold | undefined
}

/** Why a run waits: one reason for each parallel branch, of which there may be very many. Never empty. */
export async function becauseOf(run: WaitingRun): Promise<Reason[]> {
  const deadlines = new Set(run.waits.map((wait) => wait.message_id))
  const deliveries = run.pending.filter((message) => !deadlines.has(message.message_id))
  const sent = run.pause ? deliveries.filter((message) => !isHeld(run, message)) : deliveries
  const reasons: Because[] = [
    ...(await mapInSlices(run.waits, eventReason)),
    ...run.invoked.map(invokedReason),
    ...(await mapInSlices(sent, (one) => reasonWithStep(run, one))),
    ...discardedBranchReason(run),
  ]
  const all = reasons.length > 0 || sent.length < deliveries.length ? reasons : [noStepReason(run)]
  const every = [...pausedReason(run), ...run.upcomingCancels.map(cancelReason), ...all]
  return mapInSlices(every, (reason) => inWords(reason, run.now))
}

/** Whether a message of a paused run is due and not in flight, so that it waits only for the resume. */
const isHeld = (run: WaitingRun, { seq, next_at }: PendingStep): boolean =>
  next_at <= run.now && run.inFlightSince(seq) === undefined

function pausedReason({ pause }: WaitingRun): Because[] {
  if (!pause) return []
  const { at: since, by, reason, clock, ofWorkflow } = pause
  const given = { ...(reason !== undefined && { reason }), ...(ofWorkflow && { ofWorkflow }) }
  return [{ kind: 'paused', since, by, clock, ...given }]
}

function cancelReason(cancel: UpcomingCancel): Because {
  const { action_id: actionId, paused_at, created_at, place, rate_per_second, reason } = cancel
  return {
    kind: 'bulk-cancel',
    actionId,
    paused: paused_at !== null,
    since: paused_at ?? created_at,
    place,
    ...(rate_per_second !== null && { ratePerSecond: rate_per_second }),
    ...(reason !== null && { reason }),
  }
}

function eventReason(wait: WaitRow): Because {
  const { event_id: eventId, created_at: since, deadline: until } = wait
  const { stepType, stepName } = stepOfWait(wait)
  return { kind: stepType === 'WaitForWebhook' ? 'webhook' : 'event', eventId, since, until, ...stepNamed(stepName) }
}

function invokedReason(child: InvokedRun): Because {
  const { run_id: workflowRunId, url: workflowUrl, created_at: since } = child
  return { kind: 'invoked-run', workflowRunId, workflowUrl, since, ...stepNamed(linkOf(child).step.stepName) }
}

/** Steps are not validated: the name may be of any type. */
const stepNamed = (stepName: unknown): StepName => (typeof stepName === 'string' ? { stepName } : {})

/** At least the creation of the run, because the steps that a restarted run keeps are older than the run. */
const lastProgressAt = ({ lastElementAt = 0, createdAt }: WaitingRun): number => Math.max(lastElementAt, createdAt)

function discardedBranchReason(run: WaitingRun): Because[] {
  const { abandonedBranches: branches } = run
  return branches.length > 0 ? [{ kind: 'discarded-branch', branches, since: lastProgressAt(run) }] : []
}

const noStepReason = (run: WaitingRun): Because => ({ kind: 'no-step', since: lastProgressAt(run) })

/** Adds the step to the reason. If the list does not name it, the last failed attempt may: SDKs send it in a header. */
function reasonWithStep(run: WaitingRun, message: PendingStep): Because {
  const cause = pendingReason(run, message)
  const { stepName } = run.subjectOf(message.message_id)
  const failedIn = stepName === undefined && cause.kind === 'retry' ? failedStep(lastAttempt(run, message)) : stepName
  return { ...cause, ...stepNamed(failedIn) }
}

const lastAttempt = (run: WaitingRun, { seq }: PendingStep): PendingAttempt | undefined =>
  run.attempts.filter(({ message_seq }) => message_seq === seq).at(-1)

function failedStep(attempt: PendingAttempt | undefined): string | undefined {
  return storedHeaders(attempt?.headers)['Upstash-Error-Step-Name']?.[0]
}

function pendingReason(run: WaitingRun, message: PendingStep): Cause {
  const { message_id: messageId, url, next_at: at } = message
  const since = run.inFlightSince(message.seq)
  if (since !== undefined) return { kind: 'in-flight', url, messageId, since }
  if (message.retried > 0 && at > run.now) return retryReason(run, message)
  if (at > run.now && run.debounced?.messageId === messageId)
    return { kind: 'debounced', debounceKey: run.debounced.key, until: at, messageId }
  if (at > run.now) return { kind: run.subjectOf(messageId).sleeps ? 'sleeping' : 'delayed', until: at, messageId }
  const hold = message.flow_key === null ? undefined : run.holdOf(message.flow_key)
  return hold ? heldReason(run, message, hold) : { kind: 'queued', url, messageId, ...inLine(message) }
}

/** Since when a due message waits, and its priority. */
function inLine({ next_at: nextAt, created_at: createdAt, config }: PendingStep) {
  const { priority } = storedConfig(config)
  return { since: dueOf({ nextAt, createdAt }), ...(priority !== undefined && { priority }) }
}

function heldReason(run: WaitingRun, message: PendingStep, hold: FlowHold): Cause {
  const { seq, message_id, flow_key } = message
  const place = run.flowPlaces.find(({ message_seq }) => message_seq === seq)?.place
  const { by, ...limit } = hold
  return {
    kind: 'flow-control',
    flowControlKey: flow_key ?? '',
    messageId: message_id,
    ...inLine(message),
    paused: by === 'pause',
    ...limit,
    ...(place !== undefined && { place }),
  }
}

function retryReason(run: WaitingRun, message: PendingStep): Cause {
  const last = lastAttempt(run, message)
  return {
    kind: 'retry',
    url: message.url,
    messageId: message.message_id,
    retry: message.retried,
    of: message.max_retries,
    at: message.next_at,
    status: last?.status ?? 0,
    ...(last && errorOf(last)),
  }
}

/** Characters quoted of an error. */
const MAX_ERROR_LENGTH = 200

function errorOf({ error, body }: PendingAttempt): { error?: string } {
  const said = error ?? thrownMessage(body)
  if (said === undefined) return {}
  return { error: said.length > MAX_ERROR_LENGTH ? `${said.slice(0, MAX_ERROR_LENGTH)}…` : said }
}
