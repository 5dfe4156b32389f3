import { newId } from '../../base/index.js'
import {
  AS_ACCEPTED,
  type AttemptOutcome,
  type CallbackConfig,
  configOf,
  forwardable,
  forwardedHeaders,
  type HeaderMap,
  type PendingMessage,
  parseDestination,
  readSettings,
  storedConfig,
  storedHeaders,
} from '../../queue/index.js'
import { errorText } from '../protocol/error-text.js'
import { listBodyOf } from '../protocol/outbound.js'
import { failureBody, lastResponse, recordOf, resultBody } from '../protocol/reports.js'
import { markedConfig, type RunMeta, sourceOf } from '../protocol/settings.js'
import type { Delivery } from '../transactions/runs-read.js'
import type { DeliveryColumns, NewElement } from '../transactions/runs-rows.js'
import type { RunFailing } from '../transactions/runs-settle.js'
import { metaOfCall, metaOfElement } from './columns.js'
import { attemptTimes, type DeliveryTimes, timingColumn } from './delivery-times.js'
import type { FailureReason } from './run-state.js'

/** The input from which the next element, or the failure of a run, is built. */
export interface FollowUpInput {
  readonly message: PendingMessage
  readonly outcome: AttemptOutcome
  readonly delivery: Delivery
  /** Settings and payload of the trigger. */
  readonly beginning: { readonly meta: RunMeta; readonly payload: Uint8Array }
  readonly largestStepBytes: number
  /** Bytes of a failing response that are recorded. */
  readonly responseKeepBytes: number
  readonly now: number
  /** Times of the attempt, if this process began it. */
  readonly times: DeliveryTimes | undefined
}

/** Builds the element that delivers the result of a call to the program (reference workflow 4.6.1). */
export async function resultElement(input: FollowUpInput): Promise<NewElement> {
  const { message, outcome, delivery, now } = input
  const { callback } = metaOfCall(delivery.element.meta)
  return {
    kind: 'fromCallback',
    messageId: newId('msg_', now),
    body: await resultBody(message, outcome, input.largestStepBytes),
    meta: metaOfResult(callback, input),
    dueAt: now,
    delivery: callbackDelivery(callback, 'result', input),
    timing: timingColumn(input.times),
  }
}

/** The failure callback for an undeliverable result. SDKs that repeat their settings send it with the call. */
function metaOfResult({ headers }: CallbackConfig, { now }: FollowUpInput): string | null {
  const { failureCallback } = readSettings(headers, now, AS_ACCEPTED)
  return failureCallback ? JSON.stringify({ failureCallback, ...sourceOf(headers) }) : null
}

/** Characters of an error that are kept as text, for searches. */
const MAX_ERROR_LENGTH = 500

/** Builds the failure of a run, with the call of its failure function if it has one (reference workflow 4.10). */
export async function runFailureOf(input: FollowUpInput, reason: FailureReason): Promise<RunFailing> {
  const { message, outcome, delivery, now } = input
  const response = lastResponse(outcome, reason)
  const dlqId = `${now}-${message.seq}`
  const { messageId, retried, maxRetries } = message
  const stepName = response.headers['Upstash-Error-Step-Name']?.[0]
  const failure = {
    messageId,
    ...recordOf(response, input.responseKeepBytes),
    retried,
    maxRetries,
    reason,
    text: errorText(response).slice(0, MAX_ERROR_LENGTH),
    time: now,
    ...(input.times && { times: attemptTimes(input.times, outcome.finishedAt) }),
    ...(stepName !== undefined && { stepName }),
  }
  const { failureCallback } = settingsOf(input)
  if (!failureCallback) return { failure, dlqId }
  const source = reportsList(input) ? await failingList(input) : input.beginning.payload
  const body = await failureBody({ run: delivery.run, message, response, dlqId, source })
  const id = newId('msg_', now)
  const calling = callbackDelivery(failureCallback, 'failure', input)
  return {
    failure: { ...failure, callback: { messageId: id, url: failureCallback.url } },
    dlqId,
    callback: {
      kind: 'failureCall',
      messageId: id,
      body,
      // Needed for a retry of the callback.
      meta: JSON.stringify({ delivery: calling }),
      dueAt: now,
      delivery: calling,
    },
  }
}

/** The list of the failed delivery. The delivery of a call's result has no list: then a list of the payload alone. */
function failingList({ delivery: { list }, beginning, message }: FollowUpInput): Promise<Uint8Array> {
  const steps = list.length > 0 ? list : [{ message_id: message.messageId, body: beginning.payload }]
  return listBodyOf(steps)
}

/** Whether the failure callback carries the list of the failed delivery, which SDKs without `InitialBody` expect. */
export function reportsList(of: DeliverySettings): boolean {
  const { failureCallback, reportsList: isReported } = settingsOf(of)
  return failureCallback !== undefined && isReported === true
}

type DeliverySettings = Pick<FollowUpInput, 'delivery' | 'beginning'>

/** The settings that apply to a delivery: its own if its SDK repeats them, else those of the run. */
function settingsOf({ delivery: { element }, beginning }: DeliverySettings): RunMeta {
  const { delivery, ...own } = metaOfElement(element.meta)
  switch (element.kind) {
    case 'step':
      return delivery ? { ...own, delivery } : beginning.meta
    case 'fromCallback':
      return { ...beginning.meta, ...own }
    case 'toCallback':
    case 'failureCall':
      return beginning.meta
  }
}

function callbackDelivery(callback: CallbackConfig, role: 'result' | 'failure', input: FollowUpInput): DeliveryColumns {
  const settings = readSettings(callback.headers, input.now, AS_ACCEPTED)
  const { callback: _c, failureCallback: _f, ...own } = settings
  const run = input.beginning.meta.delivery
  const flowKey = settings.flowKey ?? run.flow_key
  const { flow, ...ofRun } = storedConfig(run.config)
  // The limits in a configuration belong to its flow-control key.
  const config = { ...ofRun, ...(flow && flowKey === run.flow_key && { flow }), ...configOf(own) }
  const destination = parseDestination(callback.url)
  const headers: HeaderMap = {
    ...storedHeaders(run.headers),
    ...forwardedHeaders(forwardable(callback.headers), false),
  }
  return {
    ...run,
    url: callback.url,
    host: destination.host,
    path: destination.path,
    method: 'POST',
    headers: JSON.stringify({ ...headers, 'Content-Type': ['application/json'] }),
    config: markedConfig(config, { role }),
    ...(flowKey !== undefined && { flow_key: flowKey }),
    max_retries: settings.retries ?? run.max_retries,
  }
}
