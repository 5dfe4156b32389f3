import { unreachable } from '../../base/index.js'
import { type FlowHold, storedHeaders } from '../../queue/index.js'
import { thrownMessage } from '../protocol/error-text.js'
import { linkOf } from '../protocol/sent-steps.js'
import type { FlowPlace, InvokedRun, PendingAttempt, PendingStep } from '../transactions/runs-logs.js'
import type { UpcomingCancel } from '../transactions/runs-upcoming.js'
import type { WaitRow } from '../transactions/runs-wait.js'
import { type Subject, stepOfWait } from './run-log-data.js'

/** The step that a reason is about, where that is known: of a sequential step only its program knows what comes next. */
interface StepName {
  readonly stepName?: string
}

/** Why a run that has not ended stands where it does. Times are Unix milliseconds. */
export type Because = StepName & Cause

type Cause =
  /** It goes on until the turn of the run comes; `since` is when the action was paused, else when it was started. */
  | {
      readonly kind: 'bulk-cancel'
      readonly actionId: string
      readonly paused: boolean
      readonly since: number
      /** Among the runs that the action still has before it, from 1. */
      readonly place: number
      readonly ratePerSecond?: number
      /** Why, in the words of who has started the action. */
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
  | {
      readonly kind: 'retry'
      readonly url: string
      readonly messageId: string
      /** The retry that comes next, beginning with 1. */
      readonly retry: number
      readonly of: number
      readonly at: number
      /** Of the attempt before; 0 when there was no answer. */
      readonly status: number
      /** Why there was no answer, or what the answer says of itself. */
      readonly error?: string
    }
  | { readonly kind: 'in-flight'; readonly url: string; readonly messageId: string; readonly since: number }
  | {
      readonly kind: 'flow-control'
      readonly flowControlKey: string
      readonly messageId: string
      readonly since: number
      readonly paused: boolean
      /** Of the limit that holds it: so many calls may be open at once, or begin in a period, which ends at `until`. */
      readonly parallelism?: number
      readonly rate?: number
      readonly periodMs?: number
      readonly until?: number
      /** In the line of the key, from 1, counting what is under way; absent when it was not counted. */
      readonly place?: number
    }
  | { readonly kind: 'queued'; readonly url: string; readonly messageId: string; readonly since: number }
  /** Nothing is to come of these branches: the program has answered their deliveries without a result. */
  | { readonly kind: 'discarded-branch'; readonly branches: readonly string[]; readonly since: number }
  /** Nothing is to come: the program has answered the last delivery without a step, or ended a parallel branch. */
  | { readonly kind: 'no-step'; readonly since: number }

/** A reason with the same in words. */
export type Reason = Because & { readonly text: string }

/** What the reasons of one run are found in. */
export interface WaitingRun {
  readonly now: number
  readonly createdAt: number
  /** When the last element joined the list. */
  readonly lastElementAt: number | undefined
  readonly pending: readonly PendingStep[]
  readonly attempts: readonly PendingAttempt[]
  readonly waits: readonly WaitRow[]
  /** Runs that this one has invoked and that have not ended. */
  readonly invoked: readonly InvokedRun[]
  readonly flowPlaces: readonly FlowPlace[]
  /** Parallel branches that were planned, have no result, and to which nothing is to come. */
  readonly abandonedBranches: readonly string[]
  /** Bulk actions that are going to cancel it. */
  readonly upcomingCancels: readonly UpcomingCancel[]
  readonly subjectOf: (messageId: string) => Subject
  readonly inFlightSince: (seq: number) => number | undefined
  /** What leaves no room under a flow-control key. */
  readonly holdOf: (flowKey: string) => FlowHold | undefined
}

/** Why a run waits; several reasons for one whose branches run side by side. Never empty. */
export function becauseOf(run: WaitingRun): Reason[] {
  const deadlines = new Set(run.waits.map((wait) => wait.message_id))
  const reasons: Because[] = [
    ...run.waits.map(eventReason),
    ...run.invoked.map(invokedReason),
    ...run.pending.filter((message) => !deadlines.has(message.message_id)).map((one) => reasonWithStep(run, one)),
    ...discardedBranchReason(run),
  ]
  const all = reasons.length > 0 ? reasons : [noStepReason(run)]
  return [...run.upcomingCancels.map(cancelReason), ...all].map((reason) => ({
    ...reason,
    text: describeReason(reason, run.now),
  }))
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

/** SDKs send what they like. */
const stepNamed = (stepName: unknown): StepName => (typeof stepName === 'string' ? { stepName } : {})

const lastProgressAt = ({ lastElementAt, createdAt }: WaitingRun): number => lastElementAt ?? createdAt

function discardedBranchReason(run: WaitingRun): Because[] {
  const { abandonedBranches: branches } = run
  return branches.length > 0 ? [{ kind: 'discarded-branch', branches, since: lastProgressAt(run) }] : []
}

const noStepReason = (run: WaitingRun): Because => ({ kind: 'no-step', since: lastProgressAt(run) })

/** What the program said it failed in is known also where the list does not tell. */
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
  if (at > run.now) return { kind: run.subjectOf(messageId).sleeps ? 'sleeping' : 'delayed', until: at, messageId }
  const hold = message.flow_key === null ? undefined : run.holdOf(message.flow_key)
  return hold ? heldReason(run, message, hold) : { kind: 'queued', url, messageId, since: at }
}

function heldReason(run: WaitingRun, { seq, message_id, flow_key, next_at }: PendingStep, hold: FlowHold): Cause {
  const place = run.flowPlaces.find(({ message_seq }) => message_seq === seq)?.place
  const { by, ...limit } = hold
  return {
    kind: 'flow-control',
    flowControlKey: flow_key ?? '',
    messageId: message_id,
    since: next_at,
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

/** Characters of what an answer says of itself. */
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
    case 'bulk-cancel':
      return describeCancel(because)
    case 'webhook':
      return `waiting for a call of its webhook since ${time(because.since)}; gives up at ${time(because.until)}`
    case 'event':
      return `waiting for the event "${because.eventId}" since ${time(because.since)}; gives up at ${time(because.until)}`
    case 'invoked-run':
      return `waiting for the invoked run "${because.workflowRunId}" since ${time(because.since)}`
    case 'delayed':
      return `delayed until ${time(because.until)}`
    case 'sleeping':
      return `sleeping until ${time(because.until)}`
    case 'retry':
      return `retry ${because.retry} of ${because.of} at ${time(because.at)}, after ${describeFailure(because)}`
    case 'in-flight':
      return `${because.url} has had the request for ${seconds(now - because.since)}`
    case 'flow-control':
      return describeFlowControl(because, now)
    case 'queued':
      return `due for ${seconds(now - because.since)}, waiting for its turn among the deliveries to ${because.url}`
    case 'discarded-branch':
      return `the program has answered the delivery of ${describeBranches(because.branches)} without a result, the last one after ${time(because.since)}; nothing more will be delivered of ${because.branches.length === 1 ? 'it' : 'them'}`
    case 'no-step':
      return `the program has answered every delivery, the last one after ${time(because.since)}, without sending a further step; nothing more will be delivered`
    default:
      return unreachable(because)
  }
}

function describeCancel(cancel: Extract<Cause, { kind: 'bulk-cancel' }>): string {
  const { actionId, paused, since, place, ratePerSecond, reason } = cancel
  const why = reason === undefined ? '' : ` ("${reason}")`
  const what = `is going to be cancelled by the bulk action ${actionId}${why}, number ${place} of those that are left`
  if (paused) return `${what}; the action is paused since ${time(since)}`
  if (ratePerSecond === undefined) return `${what}; the action works since ${time(since)}`
  return `${what}; the action cancels at most ${ratePerSecond} a second, so that takes ${seconds((place * 1_000) / ratePerSecond)}`
}

function describeFlowControl(held: Extract<Cause, { kind: 'flow-control' }>, now: number): string {
  const place = held.place === undefined ? '' : `, place ${held.place} in its line`
  const limit = describeLimit(held)
  return `held by the flow-control key "${held.flowControlKey}" for ${seconds(now - held.since)}${place}${limit}`
}

function describeLimit({
  paused,
  parallelism,
  rate,
  periodMs,
  until,
}: Extract<Cause, { kind: 'flow-control' }>): string {
  if (paused) return ', which is paused'
  if (parallelism !== undefined) return `; it lets ${parallelism} be under way at once`
  if (rate === undefined || periodMs === undefined || until === undefined) return ''
  return `; it lets ${rate} begin in ${seconds(periodMs)}, the next at ${time(until)}`
}

function describeBranches(branches: readonly string[]): string {
  const names = branches.map((name) => `"${name}"`).join(', ')
  return branches.length === 1 ? `the parallel branch ${names}` : `the parallel branches ${names}`
}

function describeFailure({ status, error }: { readonly status: number; readonly error?: string }): string {
  if (status === 0) return error ?? 'no answer'
  return error === undefined ? `HTTP ${status}` : `HTTP ${status}: ${error}`
}
