import { isObject, TimeSlice, tryParseJson } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { enqueueMessage, publishBatch, publishMessage } from '../../contract/queue/messages.js'
import { type Call, compileChecker, type Route, reply, route, type TooLarge } from '../../http/index.js'
import { areSameHeaders } from '../headers.js'
import { refuseTooMany } from '../publish/groups.js'
import { headersOfItem, itemOfRequest } from '../publish/request.js'
import type { BatchReply, GroupReply, PublishItem } from '../types.js'
import type { ApiDeps } from './deps.js'

interface WireItem {
  readonly destination: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | null
  readonly queue?: string | null
}

const encoder = new TextEncoder()

/**
 * Encodes bodies as UTF-8 into one buffer, which moves to the store's thread as a whole. A separate buffer for each small
 * message would cost more than all its other processing.
 */
function encodeTogether(texts: readonly (string | undefined)[]): (Uint8Array | undefined)[] {
  const sizes = texts.map((text) => (text === undefined ? 0 : Buffer.byteLength(text)))
  const whole = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0))
  let at = 0
  return texts.map((text, index) => {
    if (text === undefined) return undefined
    const bytes = whole.subarray(at, at + (sizes[index] ?? 0))
    at += bytes.byteLength
    encoder.encodeInto(text, bytes)
    return bytes
  })
}

type WireHeaders = Readonly<Record<string, string>>

const NO_HEADERS: WireHeaders = {}

/** Reads the headers of the items of a batch. Items in a row with the same headers share one result. */
class HeaderReader {
  #wire = NO_HEADERS
  #headers = NO_HEADERS

  read(wire: WireHeaders = NO_HEADERS): WireHeaders {
    if (areSameHeaders(wire, this.#wire)) return this.#headers
    this.#headers = headersOfItem(wire)
    this.#wire = wire
    return this.#headers
  }
}

const itemOfBatch = (wire: WireItem, headers: WireHeaders, body: Uint8Array | undefined): PublishItem =>
  typeof wire.queue !== 'string'
    ? { destination: wire.destination, headers, body }
    : { destination: wire.destination, headers, body, queue: wire.queue }

const checkBatch = compileChecker(publishBatch.body.schema, 'body')

/**
 * Reads the items of a batch.
 * @throws HomeportError for a batch that breaks its schema. If an item shows which intake it belongs to, that intake
 * chooses the error.
 */
async function readBatch({ publishing }: ApiDeps, body: unknown): Promise<PublishItem[]> {
  try {
    if (Array.isArray(body)) refuseTooMany(body.length)
    checkBatch(body)
  } catch (error) {
    if (!(error instanceof HomeportError)) throw error
    throw publishing.refusal(readableItems(body), error)
  }
  // Validated right above.
  const wires = body as readonly WireItem[]
  const items: PublishItem[] = []
  const reader = new HeaderReader()
  const slice = new TimeSlice()
  for (const group of inGroups(wires)) {
    const bodies = encodeTogether(group.map((wire) => wire.body ?? undefined))
    for (const [index, wire] of group.entries()) items.push(itemOfBatch(wire, reader.read(wire.headers), bodies[index]))
    if (slice.isOver) await slice.rest()
  }
  return items
}

/** Limits of a group of items that is encoded together: items, and characters of bodies. */
const GROUP_ITEMS = 100
const GROUP_CHARACTERS = 1_048_576

/** Splits items into groups that are read without a pause. */
function* inGroups(wires: readonly WireItem[]): Generator<readonly WireItem[]> {
  let group: WireItem[] = []
  let characters = 0
  for (const wire of wires) {
    group.push(wire)
    characters += wire.body?.length ?? 0
    if (group.length < GROUP_ITEMS && characters < GROUP_CHARACTERS) continue
    yield group
    group = []
    characters = 0
  }
  if (group.length > 0) yield group
}

/**
 * How many items and headers are read to find the intake. Clients send the steps
 * of one run together, so the first suffice.
 */
const MAX_READABLE = 100
const MAX_READABLE_LENGTH = 500

/** Items with the readable headers of an unvalidated body, whose items may be any JSON. */
function readableItems(body: unknown): PublishItem[] {
  const items: readonly unknown[] = Array.isArray(body) ? body.slice(0, MAX_READABLE) : []
  return items.flatMap((item) => {
    const headers: unknown = isObject(item) ? item.headers : undefined
    if (!isObject(headers)) return []
    const texts = Object.entries(headers).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].length < MAX_READABLE_LENGTH,
    )
    const own = headersOfItem(Object.fromEntries(texts.slice(0, MAX_READABLE)))
    return [itemOfBatch({ destination: '' }, own, undefined)]
  })
}

type SingleCall = Pick<Call, 'caller' | 'ip' | 'headers' | 'requestId'> & { readonly body: Uint8Array }

/** Publishes one item. Returns a list of replies if it went to a URL group. */
async function publishOne({ publishing }: ApiDeps, call: SingleCall, rest: string, queue?: string) {
  const item = itemOfRequest({ rest, headers: call.headers, body: call.body })
  const named = queue === undefined ? item : { ...item, queue }
  const [answer] = await publishing.publish({ caller: call.caller, ip: call.ip, requestId: call.requestId }, [named])
  if (answer instanceof HomeportError) throw answer
  if (!answer) throw new Error('a published item got no answer')
  if (isGroup(answer)) return [...answer]
  if ('error' in answer) throw new HomeportError('invalid_request', { problem: answer.error })
  return answer.deduplicated ? reply(202, answer) : answer
}

const isGroup = (answer: BatchReply | GroupReply): answer is GroupReply => Array.isArray(answer)

/** The beginning of a batch as clients write it, up to the headers of its first item. */
const FIRST_HEADERS =
  /^\s*\[\s*\{\s*"destination"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"headers"\s*:\s*(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})/

/** The error for a batch that is too large, chosen by the intake of its first item. */
function refuseTooLargeBatch({ publishing }: ApiDeps, { head, error }: TooLarge): HomeportError {
  const headers = tryParseJson(FIRST_HEADERS.exec(head.toString())?.[1] ?? '')
  return publishing.refusal(readableItems([{ headers }]), error)
}

function refuseTooLarge({ publishing }: ApiDeps, { headers, error }: TooLarge): HomeportError {
  return publishing.refusal(readableItems([{ headers }]), error)
}

/** Publishing, alone and in batches. */
export function publishRoutes(deps: ApiDeps): Route[] {
  return [
    {
      ...route(publishMessage, (call) => publishOne(deps, call, call.params.destination)),
      refuseTooLarge: (request) => refuseTooLarge(deps, request),
    },
    route(enqueueMessage, (call) => publishOne(deps, call, call.params.destination, call.params.queueName)),
    {
      ...route(publishBatch, (call) => publishMany(deps, call)),
      refuseTooLarge: (request) => refuseTooLargeBatch(deps, request),
    },
  ]
}

async function publishMany(
  deps: ApiDeps,
  { caller, ip, requestId, body }: Pick<Call, 'caller' | 'ip' | 'requestId' | 'body'>,
) {
  const replies = await deps.publishing.publish({ caller, ip, requestId }, await readBatch(deps, body))
  return replies.map((answer) => {
    if (answer instanceof HomeportError) return { error: answer.message }
    return isGroup(answer) ? [...answer] : answer
  })
}
