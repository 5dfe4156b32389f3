import { draftMessage } from '../publish/draft.js'
import { AS_ACCEPTED } from '../publish/settings.js'
import type { NewMessage } from '../transactions/messages.js'
import type { AttemptOutcome, CallbackConfig, PendingMessage, Redaction } from '../types.js'

/** What a callback tells about. */
export interface CallbackFacts {
  readonly message: PendingMessage
  readonly outcome: AttemptOutcome
  /** The dead letter that the failure made; failure callbacks only. */
  readonly dlqId?: string
}

const base64 = (bytes: Uint8Array | undefined): string => (bytes ? Buffer.from(bytes).toString('base64') : '')

/** The JSON body of a callback (reference queue 3.6). Without an answer the status is 0 and the body says why. */
export function callbackBody({ message, outcome, dlqId }: CallbackFacts): Record<string, unknown> {
  const response = outcome.kind === 'answered' ? outcome.response : undefined
  const error = outcome.kind === 'unanswered' ? outcome.error : undefined
  return {
    status: response?.status ?? 0,
    header: response?.headers ?? {},
    body: response ? base64(response.body) : Buffer.from(error ?? '').toString('base64'),
    retried: message.retried,
    maxRetries: message.maxRetries,
    sourceMessageId: message.messageId,
    url: message.url,
    method: message.method,
    sourceHeader: message.headers,
    sourceBody: base64(message.body),
    notBefore: message.nextAt,
    createdAt: message.createdAt,
    ...(message.callerIp !== undefined && { callerIP: message.callerIp }),
    ...(message.topic !== undefined && { topicName: message.topic }),
    ...(message.endpoint !== undefined && { endpointName: message.endpoint }),
    ...(message.scheduleId !== undefined && { scheduleId: message.scheduleId }),
    ...(dlqId !== undefined && { dlqId }),
  }
}

/** The body of a callback holds everything of its source, so it is redacted as soon as anything of that is. */
function redactFields(redact: Redaction, own: string | undefined): string {
  const names = redact.headers === 'all' ? ['header'] : (redact.headers ?? []).map((name) => `header[${name}]`)
  return ['body', ...names, ...(own ? [own] : [])].join(',')
}

/** The settings of a callback as publish headers. */
function headersOf({ headers: own }: CallbackConfig, { redact }: PendingMessage['config']): CallbackConfig['headers'] {
  const fields = redact && { 'upstash-redact-fields': redactFields(redact, own['upstash-redact-fields']) }
  return { ...own, ...fields, 'content-type': 'application/json' }
}

/**
 * Makes the message that carries a callback. It is a message like any other: signed, retried as often as its own
 * settings or else the original's say, redacted where the original is, with callbacks of its own.
 */
export function callbackMessage(config: CallbackConfig, facts: CallbackFacts, now: number): NewMessage {
  const { message } = facts
  const body = new TextEncoder().encode(JSON.stringify(callbackBody(facts)))
  const headers = headersOf(config, message.config)
  const drafting = {
    accountId: message.accountId,
    callerIp: message.callerIp ?? null,
    now,
    limits: AS_ACCEPTED,
    defaultRetries: message.maxRetries,
  }
  return draftMessage({ destination: config.url, headers, body }, drafting).message
}
