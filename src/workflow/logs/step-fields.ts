import { parseDuration } from '../../base/index.js'
import { type HeaderMap, redactHeaders, redactionForUrl, storedConfig, storedHeaders } from '../../queue/index.js'
import { errorText } from '../protocol/error-text.js'
import { asObject, parseText, type SentStep } from '../protocol/sent-steps.js'
import { metaOfElement } from '../runs/columns.js'
import type { InvokedRun, PastAttempt, PendingAttempt } from '../transactions/runs-logs.js'
import type { ElementRow } from '../transactions/runs-rows.js'
import type { RunLogData } from './run-log-data.js'

/** Fields that run logs add to a step (reference workflow 4.14). */

interface DeliveryFields {
  readonly retries?: number
  readonly retryDelay?: string
  readonly headers?: HeaderMap
}

/** Delivery settings of a step: its own, else those of the trigger. */
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

/** Fields of a wait that has ended. */
export function waitFields({ meta }: ElementRow, { waitEventId, waitTimeout }: SentStep['step']): object {
  if (typeof waitEventId !== 'string') return {}
  const { since, until } = asObject(asObject(parseText(meta))?.wait) ?? {}
  const times = typeof since === 'number' && typeof until === 'number' ? waitTimes(since, until) : {}
  return { waitTimeout: waitTimeout === true, ...times }
}

/** Duration and deadline of a wait; parameters in Unix milliseconds. */
export function waitTimes(since: number, until: number): object {
  return { waitTimeoutDuration: `${Math.round((until - since) / 1_000)}s`, waitTimeoutDeadline: until }
}

/** End of a sleep, Unix milliseconds; SDKs send seconds. */
export function sleepFields({ sleepUntil }: SentStep['step']): object {
  return typeof sleepUntil === 'number' ? { sleepUntil: Math.round(sleepUntil * 1_000) } : {}
}

/** When a sleep ends, Unix milliseconds; `undefined` for any other step. */
export function endOfSleep({ sleepFor, sleepUntil }: SentStep['step'], startedAt: number): number | undefined {
  if (typeof sleepUntil === 'number') return Math.round(sleepUntil * 1_000)
  if (typeof sleepFor === 'number') return startedAt + sleepFor * 1_000
  const ms = typeof sleepFor === 'string' ? parseDuration(sleepFor) : undefined
  return ms === undefined ? undefined : startedAt + ms
}

/** Request and response of a call. */
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

/** Request of a call, from its element. */
export function callRequest(run: RunLogData, element: ElementRow): object {
  const delivery = asObject(asObject(parseText(element.meta))?.delivery) ?? {}
  const headers = storedHeaders(String(delivery.headers ?? '{}'))
  return {
    callUrl: delivery.url,
    callMethod: delivery.method,
    callHeaders: redactHeaders(headers, redactionForUrl(String(delivery.url), undefined)),
    callBody: trim(new TextDecoder().decode(element.body), run.trimTo),
  }
}

/** The run that a step has invoked, by the message that reported its end. */
export function invocationFields(run: RunLogData, messageId: string): object {
  const child = run.invokedBy.get(messageId)
  return child ? invokedRunFields(run, child) : {}
}

/** Fields of an invoked run. */
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

/** A failed attempt in run logs. */
export interface AttemptError {
  /** Text for people. */
  readonly error: string
  readonly status: number
  readonly headers: HeaderMap
  readonly body: string
  readonly time: number
}

/** Builds the view of a failed attempt, with its body cut to `trimTo` characters. */
export function attemptError(attempt: Omit<PendingAttempt, 'message_seq'>, trimTo: number): AttemptError {
  return {
    error: errorText(attempt),
    status: attempt.status,
    headers: storedHeaders(attempt.headers),
    body: trim(new TextDecoder().decode(attempt.body ?? undefined), trimTo),
    time: attempt.started_at,
  }
}

/** Id of the step that a delivery was for. */
export type StepOfDelivery = number | 'unknown'

/** Failed attempts of finished deliveries, by step. */
export type ErrorsByStep = ReadonlyMap<StepOfDelivery, readonly AttemptError[]>

/**
 * Groups the failed attempts of finished deliveries by step. Such a delivery succeeded later, or a cancel ended it.
 * @param stepOf maps a message to the step that its delivery was for.
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

/** Cuts a text without a mark: the client asked for it. */
export function trim(text: string, trimTo: number): string {
  return text.length > trimTo ? text.slice(0, trimTo) : text
}
