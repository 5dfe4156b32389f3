import type { Static } from 'typebox'
import type { EVENT_STATES, Event } from '../../contract/queue/fields.js'
import { storedConfig, storedHeaders } from '../columns.js'
import type { AttemptRow, MessageHistory } from '../transactions/messages-read.js'
import { bodyBase64, callbackHeaders, mutable, settingMembers } from './message-view.js'
import { redactHeaders } from './redact.js'

/** An entry of the log as the wire shows it. */
export type EventView = Static<typeof Event>
/** The state of an entry. */
export type EventState = (typeof EVENT_STATES)[number]

type Happening = Pick<EventView, 'time' | 'state'> & Partial<EventView>

/** An answer, wherever it is kept. */
interface Answer {
  readonly status: number
  readonly headers: string | null
  readonly body: Uint8Array | null
  readonly error: string | null
}

function answerMembers({ status, headers, body, error }: Answer, mostBytes: number): Partial<EventView> {
  if (status === 0) return error === null ? {} : { error }
  const responseHeaders = mutable(storedHeaders(headers))
  return {
    responseStatus: status,
    responseHeaders,
    responseHeader: responseHeaders,
    ...(body && { responseBody: Buffer.from(body.subarray(0, mostBytes)).toString('base64') }),
  }
}

/** Why an attempt failed, in words. */
function errorOf({ status, error }: Answer): string {
  return error ?? `the destination answered with status ${status}`
}

function failedAttempt(attempt: AttemptRow, mostBytes: number): Happening[] {
  const shown = { ...answerMembers(attempt, mostBytes), error: errorOf(attempt), nextDeliveryTime: attempt.next_at }
  return [
    { time: attempt.started_at, state: 'ACTIVE' },
    { time: attempt.finished_at, state: 'ERROR', ...shown },
    { time: attempt.finished_at, state: 'RETRY', ...shown },
  ]
}

/** How a message ended, as entries; none while it is pending. */
function end({ message }: MessageHistory, mostBytes: number): Happening[] {
  const time = message.finished_at ?? 0
  const { response_status: status, response_headers: headers, response_body: body, error } = message
  const answer: Answer = { status: status ?? 0, headers, body, error }
  const active: Happening = { time: message.started_at ?? time, state: 'ACTIVE' }
  switch (message.state) {
    case 'held':
    case 'pending':
      return []
    case 'delivered':
      return [active, { time, state: 'DELIVERED', ...answerMembers(answer, mostBytes) }]
    case 'failed': {
      const shown = { ...answerMembers(answer, mostBytes), error: errorOf(answer) }
      return [active, { time, state: 'ERROR', ...shown }, { time, state: 'FAILED', ...shown }]
    }
    case 'canceled':
      return [
        { time, state: 'CANCEL_REQUESTED' },
        { time, state: 'CANCELED' },
      ]
  }
}

/**
 * The log of a message, oldest entry first. Nothing is written for the log: it follows from the message and its
 * failed attempts (reference queue 3.5).
 * @param mostBytes bodies are cut to this length.
 */
export function eventsOf(history: MessageHistory, mostBytes: number): EventView[] {
  const { message, attempts } = history
  const config = storedConfig(message.config)
  const shared = {
    messageId: message.message_id,
    url: message.url,
    method: message.method,
    header: mutable(redactHeaders(storedHeaders(message.headers), config.redact)),
    body: bodyBase64(message, config, mostBytes),
    maxRetries: message.max_retries,
    ...settingMembers(message, config),
    ...(config.retryDelay !== undefined && { retryDelayExpr: config.retryDelay }),
    ...(config.callback && { callbackHeaders: callbackHeaders(config.callback, config) }),
    ...(config.failureCallback && { failureCallbackHeaders: callbackHeaders(config.failureCallback, config) }),
  }
  const happenings: Happening[] = [
    {
      time: message.created_at,
      state: 'CREATED',
      ...(message.state === 'pending' && { nextDeliveryTime: message.next_at }),
    },
    ...attempts.flatMap((attempt) => failedAttempt(attempt, mostBytes)),
    ...end(history, mostBytes),
  ]
  return happenings.map((happening) => ({ ...shared, ...happening }))
}
