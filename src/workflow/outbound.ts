import type { HeaderMap, Outbound, PendingMessage } from '../queue/index.js'
import type { Delivery, ListedStep } from '../store/operations/runs.js'
import { base64 } from './bytes.js'
import {
  CREATED_AT_HEADER,
  INIT_HEADER,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  RUN_ID_HEADER,
  UNKNOWN_SDK_HEADER,
  URL_HEADER,
} from './protocol.js'
import { markOf } from './settings.js'

/** A list larger than this is not sent to a program that can fetch it (reference workflow 4.5). */
export const INLINE_LIMIT_BYTES = 32 * 1024 * 1024

/** A third party's answer that is larger than this does not fit into a step; the program is told so instead. */
export const CALL_ANSWER_LIMIT_BYTES = 8 * 1024 * 1024

/**
 * The request that delivers an element of a run.
 * @param inlineLimitBytes a list that is larger is left to be fetched, by a program that can.
 */
export function outboundOf(
  message: PendingMessage,
  delivery: Delivery,
  inlineLimitBytes: number = INLINE_LIMIT_BYTES,
): Outbound {
  const { role, lazy } = markOf(message.config)
  switch (role) {
    case 'call':
      return { ...request(message, message.headers, delivery.body), keepBytes: CALL_ANSWER_LIMIT_BYTES }
    case 'result':
    case 'failure':
      // Without the protocol's version: with it the SDK would take the body for a list.
      return request(message, { ...message.headers, ...identity(delivery) }, delivery.body)
    case 'contact':
      return request(
        message,
        { ...message.headers, ...identity(delivery), [UNKNOWN_SDK_HEADER]: ['true'] },
        listBody(delivery.list),
      )
    case 'first':
    case 'step':
      return request(
        message,
        { ...message.headers, ...identity(delivery), ...listHeaders(delivery) },
        lazy && listBytes(delivery.list) > inlineLimitBytes ? undefined : listBody(delivery.list),
      )
  }
}

function request({ url, method }: PendingMessage, headers: HeaderMap, body: Uint8Array | undefined): Outbound {
  return { url, method, headers, body: body && body.byteLength > 0 ? body : undefined }
}

function identity({ run }: Delivery): HeaderMap {
  return { [RUN_ID_HEADER]: [run.run_id], [CREATED_AT_HEADER]: [String(run.created_at)] }
}

function listHeaders({ run }: Delivery): HeaderMap {
  return { [PROTOCOL_HEADER]: [PROTOCOL_VERSION], [URL_HEADER]: [run.url], [INIT_HEADER]: ['false'] }
}

function listBytes(list: readonly ListedStep[]): number {
  return list.reduce((sum, step) => sum + step.body.byteLength, 0)
}

/** The list as the SDK reads it. Ids and base64 need no escaping in JSON. */
export function listBody(list: readonly ListedStep[]): Uint8Array {
  const elements = list.map(
    ({ message_id, body }) => `{"messageId":"${message_id}","body":"${base64(body)}","callType":"step"}`,
  )
  return Buffer.from(`[${elements.join(',')}]`)
}
