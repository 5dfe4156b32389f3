import { joinedInSlices, mapInSlices } from '../../base/index.js'
import type { HeaderMap, Outbound, PendingMessage } from '../../queue/index.js'
import type { Delivery, ListedStep, RunOfDelivery } from '../transactions/runs-read.js'
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

/** A larger list is not sent: SDKs fetch it (reference workflow 4.5). The run of an SDK that cannot do that fails. */
export const INLINE_LIMIT_BYTES = 32 * 1024 * 1024

/**
 * A run with more payload and results fails: SDKs parse the list as one text, which JavaScript limits to 512 MiB, and need
 * more than ten times its size in memory.
 */
export const LIST_LIMIT_BYTES = 256 * 1024 * 1024

/** Limit of a third party's response. A larger one does not fit into a step; the program gets an error instead. */
export const CALL_RESPONSE_LIMIT_BYTES = 8 * 1024 * 1024

/** A list of at most this many bytes is encoded in one go, which takes a millisecond or two. */
const AT_ONCE_BYTES = 262_144

/** A step as it appears in the body of a delivery. */
export interface ListElement {
  readonly messageId: string
  /** JSON. Ids and base64 need no escaping. */
  readonly text: string
  /** Size of the step itself, before base64. */
  readonly bodyBytes: number
}

/** Serializes a step for the body of a delivery. */
export function listElement({ message_id: messageId, body }: ListedStep): ListElement {
  const text = `{"messageId":"${messageId}","body":"${base64(body)}","callType":"step"}`
  return { messageId, text, bodyBytes: body.byteLength }
}

/** The data of a request. */
export interface Sending {
  readonly run: RunOfDelivery
  /** The body of deliveries of a list; empty if it is too large to be sent. */
  readonly list: readonly ListElement[]
  /** The encoded list as SDKs parse it, if it was encoded in slices before. */
  readonly listBody?: Uint8Array
  /** The body of other deliveries. */
  readonly body: Uint8Array
}

/** The data of a request for a delivery that was read from the store. */
export function sendingOf({ run, list, body }: Delivery): Sending {
  return { run, list: list.map(listElement), body }
}

/**
 * Does the same, but encodes a long list in slices and yields to the event loop between them: 32 MiB in one go would take a
 * quarter of a second.
 */
export async function sendingInSlices(delivery: Delivery): Promise<Sending> {
  const { run, list, body } = delivery
  if (list.reduce((sum, step) => sum + step.body.byteLength, 0) <= AT_ONCE_BYTES) return sendingOf(delivery)
  const elements = await mapInSlices(list, listElement)
  return { run, list: elements, body, listBody: await listBodyInSlices(elements) }
}

/**
 * The request that delivers an element of a run.
 * @param inlineLimitBytes a larger list is left out.
 */
export function outboundOf(
  message: PendingMessage,
  sending: Sending,
  inlineLimitBytes: number = INLINE_LIMIT_BYTES,
): Outbound {
  const { role } = markOf(message.config)
  switch (role) {
    case 'call':
      return { ...request(message, message.headers, sending.body), keepBytes: CALL_RESPONSE_LIMIT_BYTES }
    case 'result':
    case 'failure':
      // Without the protocol's version: with it the SDK would parse the body as a list.
      return request(message, withIdentity(message, sending), sending.body)
    case 'contact':
      return request(
        message,
        { ...withIdentity(message, sending), [UNKNOWN_SDK_HEADER]: ['true'] },
        bodyOf(sending, inlineLimitBytes),
      )
    case 'first':
    case 'untried':
    case 'step':
      return request(message, withListHeaders(message, sending), bodyOf(sending, inlineLimitBytes))
  }
}

function request({ url, method }: PendingMessage, headers: HeaderMap, body: Uint8Array | undefined): Outbound {
  return { url, method, headers, body: body && body.byteLength > 0 ? body : undefined }
}

// Headers are assigned one by one: computed names in an object literal, and further spreads, cost many times as much.

function withIdentity({ headers }: PendingMessage, { run }: Sending): Record<string, readonly string[]> {
  const all: Record<string, readonly string[]> = { ...headers }
  all[RUN_ID_HEADER] = [run.run_id]
  all[CREATED_AT_HEADER] = [String(run.created_at)]
  return all
}

function withListHeaders(message: PendingMessage, sending: Sending): HeaderMap {
  const all = withIdentity(message, sending)
  all[PROTOCOL_HEADER] = [PROTOCOL_VERSION]
  all[URL_HEADER] = [inHeader(sending.run.url)]
  all[INIT_HEADER] = ['false']
  return all
}

/** Encodes a URL for a header. It is stored as it was sent, and may have characters that no header can hold. */
const inHeader = (url: string): string => (/[^\x00-\xff]/.test(url) ? new URL(url).href : url)

const bodyOf = ({ list, listBody: made }: Sending, most: number): Uint8Array | undefined =>
  list.length === 0 || listBytes(list) > most ? undefined : (made ?? listBody(list))

function listBytes(list: readonly ListElement[]): number {
  return list.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0)
}

/** A list as SDKs parse it. */
export async function listBodyOf(steps: readonly ListedStep[]): Promise<Uint8Array> {
  return listBodyInSlices(await mapInSlices(steps, listElement))
}

const listBodyInSlices = (list: readonly ListElement[]): Promise<Uint8Array> =>
  joinedInSlices([...list.flatMap(({ text }, index) => [index === 0 ? '[' : ',', text]), ']'])

function listBody(list: readonly ListElement[]): Uint8Array {
  return Buffer.from(`[${list.map(({ text }) => text).join(',')}]`)
}
