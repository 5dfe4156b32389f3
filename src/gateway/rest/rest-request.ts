import type { IncomingMessage, ServerResponse } from 'node:http'
import { HomeportError } from '../../contract/errors.js'
import { discardBody } from '../../http/index.js'
import { administer } from '../administer.js'
import { checkAddress } from '../allow-list.js'
import { findCommandByName } from '../command-table.js'
import { errorText } from '../error-text.js'
import type { LaneKey } from '../lane/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import { type AskEngine, askOver } from '../limits/engine-questions.js'
import type { LoginWatch } from '../limits/login-watch.js'
import type { SyncTokens } from '../regions/sync-token.js'
import type { DataAccess } from '../seams.js'
import type { ClientAddresses } from './client-address.js'
import { EventStream, eventCommand } from './event-stream.js'
import {
  isPrepared,
  prepareSlots,
  readPipeline,
  readReply,
  runTransaction,
  type Slot,
  sendCommand,
  sendPipeline,
} from './execute.js'
import { type HttpAnswers, replyJson, SYNC_TOKEN_HEADER } from './http-answers.js'
import { parseCommand, parsePipeline } from './json-commands.js'
import { momentSeen, seeing, sendToNearest, type Ways } from './nearest.js'
import { pathCommand, queryValue, splitTarget, type Target } from './path-command.js'
import { permitAll, permitEach, runMeasured } from './permit.js'
import { type PreparedCommand, prepareCommand } from './prepare.js'
import type { ReplyEncoding } from './reply-reader.js'
import { readBody } from './request-body.js'
import type { RestListenerOptions } from './rest-listener.js'

/** How the client wants to be answered. */
interface ReplyForm {
  readonly format: 'json' | 'resp2'
  readonly encoding: ReplyEncoding
}

/** What the commands of a request travel on, and what limits them. */
interface Lane extends Ways {
  readonly guard: DatabaseGuard
  readonly ask: AskEngine
}

/** What the requests of a listener share. */
export interface SharedParts {
  readonly answers: HttpAnswers
  readonly tokens: SyncTokens
  readonly streams: Set<EventStream>
  readonly addresses: ClientAddresses
  /** Slows down those who guess tokens. */
  readonly logins: LoginWatch
}

const BEARER = /^bearer +(\S+) *$/i

/** One HTTP request of the REST data plane, from its token to its answer. */
export class RestRequest {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #options: RestListenerOptions
  readonly #answers: HttpAnswers
  readonly #shared: SharedParts

  constructor(request: IncomingMessage, response: ServerResponse, options: RestListenerOptions, shared: SharedParts) {
    this.#request = request
    this.#response = response
    this.#options = options
    this.#answers = shared.answers
    this.#shared = shared
  }

  /** Answers the request; rejects with what `fail` then tells the client. */
  async handle(): Promise<void> {
    const target = splitTarget(this.#request.url ?? '/')
    const access = this.#authenticate(target)
    if (!access) return this.#refuseToken()
    const form = this.#replyForm()
    const guard = this.#options.guards.of(access.database)
    guard.touch()
    const body = await readBody(this.#request, guard.maxRequestBytes)
    guard.meter.bytesIn += body.length + (this.#request.url?.length ?? 0)
    const key: LaneKey = { databaseId: access.database.databaseId, user: access.user, protocol: 2 }
    const events = eventCommand(target)
    if (events) {
      await this.#stream(key, events, guard)
      return
    }
    const lane = this.#laneOf(key, guard)
    switch (target.path) {
      case '/pipeline':
        return this.#pipeline(lane, body, form)
      case '/multi-exec':
        return this.#transaction(lane, body, form)
      default:
        return this.#single(access, lane, target, body, form)
    }
  }

  #laneOf(key: LaneKey, guard: DatabaseGuard): Lane {
    const { lanes } = this.#options
    const token = this.#request.headers[SYNC_TOKEN_HEADER]?.toString()
    // Other users than the owner may not be allowed to ask about keys.
    const link = lanes.shared(key)
    const ask = askOver(key.user === 'default' ? link : lanes.shared({ ...key, user: 'default' }))
    const moment = this.#shared.tokens.momentOf(token)
    return { link, nearby: lanes.nearby(key), moment, guard, ask }
  }

  /** Answers a method that nothing here takes. */
  refuseMethod(): void {
    const { method = '' } = this.#request
    const text = `ERR method ${method} is not allowed. Use GET, HEAD, POST or PUT.`
    this.#answers.error(this.#request, this.#response, 405, text)
  }

  /** Answers with the error that `handle` met. */
  async fail(error: unknown): Promise<void> {
    // Whoever still sends would not get to read the answer.
    if (!this.#request.complete) await discardBody(this.#request)
    if (this.#response.headersSent || this.#request.socket.destroyed) return
    if (error instanceof HomeportError) {
      this.#answers.error(this.#request, this.#response, error.status, errorText(error))
      return
    }
    const reference = Math.floor(this.#options.clock.now()).toString(36)
    this.#options.logger.error({ err: error, reference }, 'a REST request failed')
    this.#answers.error(this.#request, this.#response, 500, errorText(new HomeportError('internal', { reference })))
  }

  get #address(): string | undefined {
    return this.#shared.addresses.of(this.#request)
  }

  #authenticate({ query }: Target): DataAccess | undefined {
    const { authorization } = this.#request.headers
    const token = authorization === undefined ? queryValue(query, '_token') : BEARER.exec(authorization)?.[1]
    const access = token === undefined ? undefined : this.#options.directory.byRestToken(token)
    if (access) checkAddress(access.database, this.#address)
    return access
  }

  /** A right token is never kept waiting: it cannot be guessed, and others may share the address. */
  async #refuseToken(): Promise<never> {
    const { logins } = this.#shared
    const origin = this.#address ?? ''
    logins.failed(origin)
    const given = logins.turn(origin)
    if (given.kind === 'refused') throw new HomeportError('logins_slowed', given)
    if (given.kind === 'later') await given.turn
    throw new HomeportError('data_unauthorized', {})
  }

  #replyForm(): ReplyForm {
    const { 'upstash-encoding': encoding, 'upstash-response-format': format = 'json' } = this.#request.headers
    const base64 = encoding === 'base64'
    if (format === 'resp2' && base64)
      throw malformed('the response format resp2 cannot be combined with base64 encoding')
    if (format !== 'json' && format !== 'resp2') {
      throw malformed(`unknown response format '${String(format).slice(0, 64)}'. Use json or resp2.`)
    }
    return { format, encoding: base64 ? 'base64' : 'plain' }
  }

  async #single(access: DataAccess, lane: Lane, target: Target, body: Buffer, form: ReplyForm): Promise<void> {
    const command = prepareCommand(this.#readCommand(target, body))
    const reply =
      command.command.state === 'managed' ? await this.#administer(access, command) : await this.#send(lane, command)
    lane.guard.meter.bytesOut += reply.length
    if (form.format === 'resp2') return this.#answers.bytes(this.#request, this.#response, reply, momentSeen(lane))
    const read = readReply(command, reply, form.encoding)
    if ('error' in read) return this.#answers.error(this.#request, this.#response, 400, read.error)
    this.#answers.ok(this.#request, this.#response, replyJson(read), momentSeen(lane))
  }

  async #send(lane: Lane, command: PreparedCommand): Promise<Buffer> {
    const slots = await permitEach(lane.guard, [command], lane.ask)
    if (slots[0] instanceof HomeportError) throw slots[0]
    const send = () => sendToNearest(lane, [command], (link) => sendCommand(link, command))
    return runMeasured(lane.guard, slots, send)
  }

  #administer({ database: { databaseId }, user }: DataAccess, { command, args }: PreparedCommand): Promise<Buffer> {
    const texts = args.slice(2).map(String)
    const address = this.#address ?? ''
    return administer(this.#options, { databaseId, user, address, name: command.name, args: texts }, 2)
  }

  #readCommand(target: Target, body: Buffer): ReturnType<typeof parseCommand> {
    return target.path === '/' ? parseCommand(body.toString()) : pathCommand(target, body)
  }

  /** What the client's body holds and which encoding it wants does not matter here (reference redis 4.5). */
  async #stream(key: LaneKey, command: readonly string[], guard: DatabaseGuard): Promise<void> {
    const row = findCommandByName(command[0] ?? '')
    if (!row?.allowed) throw new Error(`no row of the command table for the event path ${command[0]}`)
    const verdict = await guard.inspect(row, command, 0, this.#laneOf(key, guard).ask)
    if (verdict) throw verdict
    guard.count(row, 1)
    const exchange = { request: this.#request, response: this.#response, answers: this.#answers, meter: guard.meter }
    const stream = new EventStream(this.#options.lanes, key, exchange)
    const { streams } = this.#shared
    streams.add(stream)
    this.#response.on('close', () => streams.delete(stream))
    stream.open(command)
  }

  async #pipeline(lane: Lane, body: Buffer, form: ReplyForm): Promise<void> {
    const { guard } = lane
    const slots = await permitEach(guard, this.#readSlots(body), lane.ask)
    const send = () => sendToNearest(lane, slots.filter(isPrepared), (way) => sendPipeline(way, slots))
    const replies = await runMeasured(guard, slots, send)
    guard.meter.bytesOut += replies.length
    const moment = momentSeen(lane)
    if (form.format === 'resp2') return this.#answers.bytes(this.#request, this.#response, replies, moment)
    const read = readPipeline(slots, replies, form.encoding)
    this.#answers.ok(this.#request, this.#response, `[${read.map(replyJson).join(',')}]`, moment)
  }

  /** Always answers in JSON, whatever the response format (reference redis 4.2). */
  async #transaction(lane: Lane, body: Buffer, form: ReplyForm): Promise<void> {
    const { link, nearby, guard } = lane
    const slots = await permitAll(guard, this.#readSlots(body), lane.ask)
    const run = () => seeing(nearby, () => runTransaction(link, slots, form.encoding))
    const outcome = await runMeasured(guard, slots, run)
    if ('error' in outcome) return this.#answers.error(this.#request, this.#response, 400, outcome.error)
    const json = `[${outcome.map(replyJson).join(',')}]`
    guard.meter.bytesOut += json.length
    this.#answers.ok(this.#request, this.#response, json, momentSeen(lane))
  }

  #readSlots(body: Buffer): readonly Slot[] {
    return prepareSlots(parsePipeline(body.toString()))
  }
}

function malformed(problem: string): HomeportError {
  return new HomeportError('command_malformed', { problem })
}
