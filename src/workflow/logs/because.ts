import { mapInSlices, unreachable } from '../../base/index.js'
import { dueOf, type FlowHold, storedConfig, storedHeaders } from '../../queue/index.js'
import { thrownMessage } from '../protocol/error-text.js'
import { linkOf } from '../protocol/sent-steps.js'
import type { FlowPlace, InvokedRun, PendingAttempt, PendingStep } from '../transactions/runs-logs.js'
import type { RunPause } from '../transactions/runs-pause.js'
import type { UpcomingCancel } from '../transactions/runs-upcoming.js'
import type { WaitRow } from '../transactions/runs-wait.js'
import { type Subject, stepOfWait } from './run-log-data.js'

/** The step that a reason concerns. Unknown between sequential steps: only the program knows which step is next. */
interface StepName {
  readonly stepName?: string
}

/** Why an active run waits. Times are Unix milliseconds. */
export type Because = StepName & Cause

type Cause =
  /** Nothing of the run is sent until it is resumed. */
  | ({ readonly kind: 'paused'; readonly since: number } & RunPause)
  /** The run continues until its turn in the bulk action. `since`: when the action was paused, else started. */
  | {
      readonly kind: 'bulk-cancel'
      readonly actionId: string
      readonly paused: boolean
      readonly since: number
      /** Position among the runs that the action has not processed yet, from 1. */
      readonly place: number
      readonly ratePerSecond?: number
      /** The reason given at the start of the action. */
      readonly reason?: string
    }
  | { readonly kind: 'event' | 'webhook'; readonly eventId: string; readonly since: number; readonly until: number }
  | {
      readonly kind: 'invoked-run'
      readonly workflowRunId: string
      readonly workflowUrl: string
      readonly since: number
    }
  | { readonly kind: 'delayed' | 'sleeping'; readonly until: number; readonly messageId: string }
  /** A newer trigger with the debounce key replaces the run until then. */
  | {
      readonly kind: 'debounced'
      readonly debounceKey: string
      readonly until: number
      readonly messageId: string
    }
  | {
      readonly kind: 'retry'
      readonly url: string
      readonly messageId: string
      /** Number of the next retry, from 1. */
      readonly retry: number
      readonly of: number
      readonly at: number
      /** Of the previous attempt; 0 if there was no response. */
      readonly status: number
      /** Why there was no response, or the error in the response. */
      readonly error?: string
    }
  | { readonly kind: 'in-flight'; readonly url: string; readonly messageId: string; readonly since: number }
  | {
      readonly kind: 'flow-control'
      readonly flowControlKey: string
      readonly messageId: string
      readonly since: number
      readonly priority?: number
      readonly paused: boolean
      /** The limit that applies: calls in flight at once, or calls that start in a period, which ends at `until`. */
      readonly parallelism?: number
      readonly rate?: number
      readonly periodMs?: number
      readonly until?: number
      /** Position among the messages of the key, from 1, counting those in flight; absent if not counted. */
      readonly place?: number
    }
  | {
      readonly kind: 'queued'
      readonly url: string
      readonly messageId: string
      readonly since: number
      readonly priority?: number
    }
  /** The program has answered the deliveries of these branches without a result; nothing more will happen. */
  | { readonly kind: 'discarded-branch'; readonly branches: readonly string[]; readonly since: number }
  /** The program has answered the last delivery without a step, or ended a parallel branch; nothing more will happen. */
  | { readonly kind: 'no-step'; readonly since: number }

/** A reason with its text for people. */
export type Reason = Because & { readonly text: string }

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
  return mapInSlices([...pausedReason(run), ...run.upcomingCancels.map(cancelReason), ...all], (reason) => ({
    ...reason,
    text: describeReason(reason, run.now),
  }))
}

/** What is due and was not sent waits for the resume alone. */
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

/** The steps that a restarted run keeps are older than it. */
const lastProgressAt = ({ lastElementAt = 0, createdAt }: WaitingRun): number => Math.max(lastElementAt, createdAt)

function discardedBranchReason(run: WaitingRun): Because[] {
  const { abandonedBranches: branches } = run
  return branches.length > 0 ? [{ kind: 'discarded-branch', branches, since: lastProgressAt(run) }] : []
}

const noStepReason = (run: WaitingRun): Because => ({ kind: 'no-step', since: lastProgressAt(run) })

/** If the list does not name the step, the last failed attempt may: SDKs send it in a header. */
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

const time = (ms: number): string => new Date(ms).toISOString()
const seconds = (ms: number): string => `${Math.max(0, Math.round(ms / 1_000))} s`

function describeReason(because: Because, now: number): string {
  const words = describeCause(because, now)
  return because.stepName === undefined ? words : `step "${because.stepName}": ${words}`
}

function describeCause(because: Cause, now: number): string {
  switch (because.kind) {
    case 'paused':
      return describePause(because)
    case 'bulk-cancel':
      return describeCancel(because)
    case 'webhook':
      return `waiting for a call of its webhook since ${time(because.since)}; times out at ${time(because.until)}`
    case 'event':
      return `waiting for the event "${because.eventId}" since ${time(because.since)}; times out at ${time(because.until)}`
    case 'invoked-run':
      return `waiting for the invoked run "${because.workflowRunId}" since ${time(because.since)}`
    case 'delayed':
      return `delayed until ${time(because.until)}`
    case 'debounced':
      return `waiting until ${time(because.until)} for newer triggers with the debounce key ${JSON.stringify(because.debounceKey)}, which would replace this run`
    case 'sleeping':
      return `sleeping until ${time(because.until)}`
    case 'retry':
      return `retry ${because.retry} of ${because.of} at ${time(because.at)}, after ${describeFailure(because)}`
    case 'in-flight':
      return `${because.url} has had the request for ${seconds(now - because.since)}`
    case 'flow-control':
      return describeFlowControl(because, now)
    case 'queued':
      return `due for ${seconds(now - because.since)}, waiting for its turn among the deliveries to ${because.url}${describePriority(because)}`
    case 'discarded-branch':
      return `the program has answered the delivery of ${describeBranches(because.branches)} without a result, the last one after ${time(because.since)}; nothing more will be delivered of ${because.branches.length === 1 ? 'it' : 'them'}`
    case 'no-step':
      return `the program has answered every delivery, the last one after ${time(because.since)}, without sending another step; nothing more will be delivered`
    default:
      return unreachable(because)
  }
}

function describePause({ by, since, reason, clock, ofWorkflow }: Extract<Cause, { kind: 'paused' }>): string {
  const why = reason === undefined ? '' : ` ("${reason}")`
  const due =
    clock === 'hold' ? 'the resume moves due times later by the time that it was paused' : 'due times stay as they are'
  return `${ofWorkflow ? 'its workflow was paused' : 'paused'} by ${by} at ${time(since)}${why}; ${due}`
}

function describeCancel(cancel: Extract<Cause, { kind: 'bulk-cancel' }>): string {
  const { actionId, paused, since, place, ratePerSecond, reason } = cancel
  const why = reason === undefined ? '' : ` ("${reason}")`
  const what = `will be cancelled by the bulk action ${actionId}${why}, number ${place} of the runs left`
  if (paused) return `${what}; the action has been paused since ${time(since)}`
  if (ratePerSecond === undefined) return `${what}; the action has been running since ${time(since)}`
  return `${what}; the action cancels at most ${ratePerSecond} per second, so in about ${seconds((place * 1_000) / ratePerSecond)}`
}

function describeFlowControl(held: Extract<Cause, { kind: 'flow-control' }>, now: number): string {
  const place = held.place === undefined ? '' : `, position ${held.place}`
  const limit = describeLimit(held)
  return `held by the flow-control key "${held.flowControlKey}" for ${seconds(now - held.since)}${place}${limit}${describePriority(held)}`
}

/** Which others go first. */
function describePriority({ priority = 0 }: { readonly priority?: number }): string {
  if (priority === 0) return ''
  const direction = priority > 0 ? 'earlier' : 'later'
  return `; by its priority it counts as due ${Math.abs(priority)} s ${direction}`
}

function describeLimit({
  paused,
  parallelism,
  rate,
  periodMs,
  until,
}: Extract<Cause, { kind: 'flow-control' }>): string {
  if (paused) return ', which is paused'
  if (parallelism !== undefined) return `; it allows ${parallelism} at once`
  if (rate === undefined || periodMs === undefined || until === undefined) return ''
  return `; it allows ${rate} per ${seconds(periodMs)}, the next at ${time(until)}`
}

function describeBranches(branches: readonly string[]): string {
  const names = branches.map((name) => `"${name}"`).join(', ')
  return branches.length === 1 ? `the parallel branch ${names}` : `the parallel branches ${names}`
}

function describeFailure({ status, error }: { readonly status: number; readonly error?: string }): string {
  if (status === 0) return error ?? 'no answer'
  return error === undefined ? `HTTP ${status}` : `HTTP ${status}: ${error}`
}
