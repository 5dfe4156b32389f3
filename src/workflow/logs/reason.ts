import { unreachable } from '../../base/index.js'
import type { RunPause } from '../transactions/runs-pause.js'

/** The step that a reason concerns. Unknown between sequential steps: only the program knows which step is next. */
export interface StepName {
  readonly stepName?: string
}

/** Why an active run waits. Times are Unix milliseconds. */
export type Because = StepName & Cause

/** A reason without its step. */
export type Cause =
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
      /** Status of the previous attempt; 0 if there was no response. */
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

const time = (ms: number): string => new Date(ms).toISOString()
const seconds = (ms: number): string => `${Math.max(0, Math.round(ms / 1_000))} s`

/** Adds the text to a reason. */
export function inWords(because: Because, now: number): Reason {
  const words = describeCause(because, now)
  return { ...because, text: because.stepName === undefined ? words : `step "${because.stepName}": ${words}` }
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
      return `retry ${because.retry} of ${because.of} at ${time(because.at)}${describeFailure(because)}`
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
    clock === 'hold'
      ? 'when it is resumed, due times move later by the length of the pause'
      : 'due times stay as they are'
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

/** How the priority of the message changes its place. */
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
  if (status === 0) return `; the last attempt failed: ${error ?? 'no answer'}`
  return error === undefined ? `, after HTTP ${status}` : `, after HTTP ${status}: ${error}`
}
