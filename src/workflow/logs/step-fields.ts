import { type HeaderMap, redactHeaders, storedConfig, storedHeaders } from '../../queue/index.js'
import { errorText } from '../protocol/error-text.js'
import { asObject, parseText, type SentStep } from '../protocol/sent-steps.js'
import { metaOfElement } from '../runs/columns.js'
import type { InvokedRun, PastAttempt, PendingAttempt } from '../transactions/runs-logs.js'
import type { ElementRow } from '../transactions/runs-rows.js'
import type { RunLogData } from './run-log-data.js'

/** What run logs show of a step besides itself (reference workflow 4.14), by what is known of it. */

interface DeliveryFields {
  readonly retries?: number
  readonly retryDelay?: string
  readonly headers?: HeaderMap
}

/** How the list with a step is delivered: as the trigger said, unless the step has settings of its own. */
export function deliveryFields(
  { delivery }: Pick<RunLogData, 'delivery'>,
  { meta }: Pick<ElementRow, 'meta'>,
): DeliveryFields {
  const own = metaOfElement(meta).delivery ?? delivery
  if (!own) return {}
  const { retryDelay, redact } = storedConfig(own.config)
  return {
    retries: own.max_retries,
    ...(retryDelay !== undefined && { retryDelay }),
    headers: redactHeaders(storedHeaders(own.headers), redact),
  }
}

/** What is known of a wait that is over. */
export function waitFields({ meta }: ElementRow, { waitEventId, waitTimeout }: SentStep['step']): object {
  if (typeof waitEventId !== 'string') return {}
  const { since, until } = asObject(asObject(parseText(meta))?.wait) ?? {}
  const times = typeof since === 'number' && typeof until === 'number' ? waitTimes(since, until) : {}
  return { waitTimeout: waitTimeout === true, ...times }
}

/** How long a wait may take, Unix milliseconds. */
export function waitTimes(since: number, until: number): object {
  return { waitTimeoutDuration: `${Math.round((until - since) / 1_000)}s`, waitTimeoutDeadline: until }
}

/** Until when a run sleeps, Unix milliseconds: an SDK says it in seconds. */
export function sleepFields({ sleepUntil }: SentStep['step']): object {
  return typeof sleepUntil === 'number' ? { sleepUntil: Math.round(sleepUntil * 1_000) } : {}
}

/** The request of a call and its answer. */
export function callFields(run: RunLogData, step: SentStep['step']): object {
  if (step.stepType !== 'Call') return {}
  const request = run.callOf.get(Number(step.stepId))
  const result = asObject(parseText(String(step.out)))
  return {
    ...(request && callRequest(run, request)),
    ...(result && {
      callResponseStatus: result.status,
      callResponseBody: trim(String(result.body ?? ''), run.trimTo),
      callResponseHeaders: result.header,
    }),
  }
}

/** The request of a call, by the element that asked for it. */
export function callRequest(run: RunLogData, element: ElementRow): object {
  const delivery = asObject(asObject(parseText(element.meta))?.delivery) ?? {}
  return {
    callUrl: delivery.url,
    callMethod: delivery.method,
    callHeaders: parseText(String(delivery.headers ?? '{}')),
    callBody: trim(new TextDecoder().decode(element.body), run.trimTo),
  }
}

/** The run that a step has invoked, by the message that told of its end. */
export function invocationFields(run: RunLogData, messageId: string): object {
  const child = run.invokedBy.get(messageId)
  return child ? invokedRunFields(run, child) : {}
}

/** A run that a step has invoked. */
export function invokedRunFields(
  { trimTo }: RunLogData,
  { run_id, url, created_at, payload, meta }: InvokedRun,
): object {
  const { delivery } = metaOfElement(meta)
  const { redact } = storedConfig(delivery?.config)
  return {
    invokedWorkflowRunId: run_id,
    invokedWorkflowUrl: url,
    invokedWorkflowCreatedAt: created_at,
    ...(!redact?.body && { invokedWorkflowRunBody: trim(new TextDecoder().decode(payload ?? undefined), trimTo) }),
    invokedWorkflowRunHeaders: redactHeaders(storedHeaders(delivery?.headers), redact),
  }
}

/** A failed attempt, as run logs show it. */
export interface AttemptError {
  /** What is wrong, in a text for people. */
  readonly error: string
  readonly status: number
  readonly headers: HeaderMap
  readonly body: string
  readonly time: number
}

/** A failed attempt, with its body cut to `trimTo` characters. */
export function attemptError(attempt: Omit<PendingAttempt, 'message_seq'>, trimTo: number): AttemptError {
  return {
    error: errorText(attempt),
    status: attempt.status,
    headers: storedHeaders(attempt.headers),
    body: trim(new TextDecoder().decode(attempt.body ?? undefined), trimTo),
    time: attempt.started_at,
  }
}

/** The number of the step that a delivery was for. */
export type StepOfDelivery = number | 'unknown'

/** Failed attempts of deliveries that are over, by the step that each was for. */
export type ErrorsByStep = ReadonlyMap<StepOfDelivery, readonly AttemptError[]>

/**
 * The failed attempts of deliveries that came through in the end, or that a cancellation has ended, by the step that
 * each was for.
 * @param stepOf the step that the delivery of a message was for.
 */
export function errorsByStep(
  attempts: readonly PastAttempt[],
  stepOf: (messageId: string) => StepOfDelivery,
  trimTo: number,
): ErrorsByStep {
  const byStep = new Map<StepOfDelivery, AttemptError[]>()
  for (const attempt of attempts) {
    const step = stepOf(attempt.message_id)
    const errors = byStep.get(step)
    if (errors) errors.push(attemptError(attempt, trimTo))
    else byStep.set(step, [attemptError(attempt, trimTo)])
  }
  return byStep
}

/** Cuts a text, telling nothing of it: readers asked for it. */
export function trim(text: string, trimTo: number): string {
  return text.length > trimTo ? text.slice(0, trimTo) : text
}
