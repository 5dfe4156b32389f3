import type { HomeportError } from '../../contract/errors/errors.js'
import type { RemoteNode } from '../../http/index.js'
import { checkAddress } from '../allow-list.js'
import { type DataAccess, DEFAULT_MAX_REQUEST_BYTES } from '../deps.js'
import type { ReadsHere } from '../replicas/reads-here.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import { isReadable, mayHoldRefusal } from '../replicas/replica-reads.js'
import type { KeptBytes } from '../resp/lent-memory.js'
import { readSlots, shapeOf } from './body-commands.js'
import { eventCommand } from './event-stream.js'
import type { Exchange } from './exchange.js'
import { forwardRequest } from './forward-request.js'
import { type ReplyForm, replyFormOf, replyJson } from './http-answers.js'
import type { Target } from './parse-commands.js'
import {
  READ_AT_ONCE_BYTES,
  ReplyReader,
  readReplies,
  replyBytes,
  replyBytesInSlices,
  SlicedReader,
} from './reply-reader.js'
import { type BodyReader, readBody } from './request-body.js'
import { sentCommands } from './send-commands.js'
import { isPrepared, type PreparedCommand } from './slots.js'

/** Longer bodies, bytes, are passed on to the home as they arrive: they are rarely reads. */
const MAX_BODY_BYTES = 64 * 1024
const MAX_COMMANDS = 1_000

/** The collaborators for a request about a database of another node. */
export interface ReplicaRequestDeps {
  readonly reads: ReadsHere
  readonly access: DataAccess
  /** The token of the request. */
  readonly token: string
  /** The home of the database. */
  readonly home: () => Promise<RemoteNode | undefined>
}

/**
 * Answers a request from the replica that this node keeps, if all of its commands are plain reads, the replica has
 * everything that the client has seen, and the home allows reads now. The home answers all other requests, and those that
 * the replica answers with an error, because reading twice does no harm. Only the home refuses requests.
 * @returns false if this node has no replica, or no home was found
 * @throws HomeportError when the home cannot be asked either.
 */
export async function answerFromReplica(
  exchange: Exchange,
  target: Target,
  deps: ReplicaRequestDeps,
): Promise<boolean> {
  const { databaseId } = deps.access.database
  const lane = deps.reads.lane({ databaseId, user: deps.access.user, protocol: 2 })
  if (!lane) return false
  exchange.owner = databaseId
  exchange.maxReplyBytes = deps.access.database.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES
  const body = mayRead(exchange, target) ? await bodyOf(exchange) : undefined
  if (body === 'gone') return true
  const isAnswered = body !== undefined && (await read(exchange, target, body, { ...deps, lane }))
  if (isAnswered) return true
  const home = await deps.home()
  if (!home) return false
  try {
    // With each part of the home's answer, the client may have seen a newer state of the primary.
    const onAnswer = (): void => {
      lane.sawPrimary()
      deps.reads.countForwarded({ kind: 'token', token: deps.token })
    }
    await forwardRequest(exchange, home, { body, onAnswer })
  } finally {
    lane.sawPrimary()
  }
  return true
}

function mayRead({ request }: Exchange, target: Target): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding, expect } = request.headers
  if (encoding !== undefined || expect !== undefined || !(Number(length) <= MAX_BODY_BYTES)) return false
  return shapeOf(target) !== 'transaction' && eventCommand(target) === undefined
}

/** The body, or `gone` when the exchange is answered because memory is short. */
function bodyOf(exchange: Exchange): Promise<Buffer | 'gone'> {
  return new Promise((resolve) => {
    const reader: BodyReader = {
      onBody: resolve,
      onBodyRefused: (error: HomeportError) => {
        exchange.fail(error)
        resolve('gone')
      },
      onBodyHeld: (bytes) => {
        const isWanted = exchange.holdBody(bytes)
        if (!isWanted) resolve('gone')
        return isWanted
      },
    }
    readBody(exchange.request, MAX_BODY_BYTES, reader)
  })
}

/** Whether the replica has answered. Never rejects. */
async function read(
  exchange: Exchange,
  target: Target,
  body: Buffer,
  { reads, access, lane }: ReplicaRequestDeps & { readonly lane: ReplicaLane },
): Promise<boolean> {
  const { databaseId } = access.database
  try {
    const commands = readsOf(target, body)
    const form = replyFormOf(exchange.request.headers)
    checkAddress(access.database, exchange.address)
    if (!commands || !reads.mayRead(databaseId) || !(await lane.until(exchange.moment))) return false
    if (!reads.take(databaseId, commands.length, exchange.moment > 0 ? 'token' : 'node')) return false
    const names = commands.map(({ command }) => command.name)
    const bytesIn = body.length + (exchange.request.url?.length ?? 0)
    lane.watch.sent()
    const replies = await sentCommands(lane.link, commands, { client: exchange })
    if (mayHoldRefusal(replies)) return false
    const bytesOut = await answer(exchange, { commands, replies, form, shape: shapeOf(target), moment: lane.moment })
    if (bytesOut !== undefined) reads.note(databaseId, names, bytesIn, bytesOut)
    return bytesOut !== undefined
  } catch {
    // The home answers instead, and reports what is wrong.
    return exchange.isAnswered
  }
}

/** The commands of a request; undefined unless all are plain reads. @throws HomeportError if the request is wrong */
function readsOf(target: Target, body: Buffer): readonly PreparedCommand[] | undefined {
  const slots = readSlots(target, body, MAX_COMMANDS)
  if (slots instanceof Promise || slots.length === 0) return undefined
  const commands = slots.filter(isPrepared)
  return commands.length === slots.length && commands.every(({ command }) => isReadable(command)) ? commands : undefined
}

interface Answered {
  readonly commands: readonly PreparedCommand[]
  readonly replies: KeptBytes
  readonly form: ReplyForm
  readonly shape: 'single' | 'pipeline' | 'transaction'
  readonly moment: number
}

/** Answers, unless the replies contain an error. Returns the number of bytes sent; undefined without an answer. */
async function answer(exchange: Exchange, answered: Answered): Promise<number | undefined> {
  const { commands, replies, form, shape, moment } = answered
  if (form.format === 'resp2') {
    const isLarge = replies.length > READ_AT_ONCE_BYTES
    const bytes = isLarge ? await replyBytesInSlices(commands, replies) : replyBytes(commands, replies)
    exchange.answerBytes(bytes, moment)
    return bytes.length
  }
  if (replies.length > READ_AT_ONCE_BYTES) {
    if (shape === 'pipeline') await exchange.beginPipeline(form, commands, moment).endInSlices(replies)
    else {
      const reply = await new SlicedReader(new ReplyReader(replies, form.encoding)).next()
      if ('error' in reply) return undefined
      await exchange.answerLarge(reply.pieces, moment)
    }
    return replies.length
  }
  const read = readReplies(commands, replies, form.encoding)
  if (read.some((reply) => 'error' in reply)) return undefined
  const [first] = read
  const json = shape === 'pipeline' ? `[${read.map(replyJson).join(',')}]` : first && replyJson(first)
  if (json !== undefined) exchange.answer(json, moment)
  return json?.length
}
