import type { IncomingMessage, ServerResponse } from 'node:http'
import { HomeportError } from '../../contract/errors.js'
import { checkAddress } from '../allow-list.js'
import { findCommandByName } from '../command-table.js'
import { errorText } from '../error-text.js'
import type { EngineLink } from '../lane/engine-link.js'
import type { LaneKey } from '../lane/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import { askOver } from '../limits/engine-questions.js'
import type { DataAccess } from '../seams.js'
import { EventStream, eventCommand } from './event-stream.js'
import {
  prepareSlots,
  readPipeline,
  readReply,
  runTransaction,
  type Slot,
  sendCommand,
  sendPipeline,
} from './execute.js'
import { type HttpAnswers, replyJson } from './http-answers.js'
import { parseCommand, parsePipeline } from './json-commands.js'
import { pathCommand, queryValue, splitTarget, type Target } from './path-command.js'
import { permitAll, permitEach, runMeasured } from './permit.js'
import { prepareCommand } from './prepare.js'
import type { ReplyEncoding } from './reply-reader.js'
import { readBody } from './request-body.js'
import type { RestListenerOptions } from './rest-listener.js'

/** How the client wants to be answered. */
interface ReplyForm {
  readonly format: 'json' | 'resp2'
  readonly encoding: ReplyEncoding
}

/** What the commands of a request travel on, and what limits them. */
interface Lane {
  readonly link: EngineLink
  readonly guard: DatabaseGuard
}

const BEARER = /^bearer +(\S+) *$/i

/** One HTTP request of the REST data plane, from its token to its answer. */
export class RestRequest {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #options: RestListenerOptions
  readonly #answers: HttpAnswers
  readonly #streams: Set<EventStream>

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    options: RestListenerOptions,
    answers: HttpAnswers,
    streams: Set<EventStream>,
  ) {
    this.#request = request
    this.#response = response
    this.#options = options
    this.#answers = answers
    this.#streams = streams
  }

  /** Answers the request; rejects with what `fail` then tells the client. */
  async handle(): Promise<void> {
    const target = splitTarget(this.#request.url ?? '/')
    const access = this.#authenticate(target)
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
    const lane: Lane = { link: this.#options.lanes.shared(key), guard }
    switch (target.path) {
      case '/pipeline':
        return this.#pipeline(lane, body, form)
      case '/multi-exec':
        return this.#transaction(lane, body, form)
      default:
        return this.#single(lane, target, body, form)
    }
  }

  /** Answers a method that nothing here takes. */
  refuseMethod(): void {
    const { method = '' } = this.#request
    const text = `ERR method ${method} is not allowed. Use GET, HEAD, POST or PUT.`
    this.#answers.error(this.#request, this.#response, 405, text)
  }

  /** Answers with the error that `handle` met. */
  fail(error: unknown): void {
    if (this.#response.headersSent || this.#request.socket.destroyed) return
    if (error instanceof HomeportError) {
      this.#answers.error(this.#request, this.#response, error.status, errorText(error))
      return
    }
    const reference = Math.floor(this.#options.clock.now()).toString(36)
    this.#options.logger.error({ err: error, reference }, 'a REST request failed')
    this.#answers.error(this.#request, this.#response, 500, errorText(new HomeportError('internal', { reference })))
  }

  #authenticate({ query }: Target): DataAccess {
    const { authorization } = this.#request.headers
    const token = authorization === undefined ? queryValue(query, '_token') : BEARER.exec(authorization)?.[1]
    const access = token === undefined ? undefined : this.#options.directory.byRestToken(token)
    if (!access) throw new HomeportError('data_unauthorized', {})
    checkAddress(access.database, this.#request.socket.remoteAddress)
    return access
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

  async #single({ link, guard }: Lane, target: Target, body: Buffer, form: ReplyForm): Promise<void> {
    const command = prepareCommand(this.#readCommand(target, body))
    const slots = await permitEach(guard, [command], askOver(link))
    if (slots[0] instanceof HomeportError) throw slots[0]
    const reply = await runMeasured(guard, slots, () => sendCommand(link, command))
    guard.meter.bytesOut += reply.length
    if (form.format === 'resp2') return this.#answers.bytes(this.#request, this.#response, reply)
    const read = readReply(command, reply, form.encoding)
    if ('error' in read) return this.#answers.error(this.#request, this.#response, 400, read.error)
    this.#answers.ok(this.#request, this.#response, replyJson(read))
  }

  #readCommand(target: Target, body: Buffer): ReturnType<typeof parseCommand> {
    return target.path === '/' ? parseCommand(body.toString()) : pathCommand(target, body)
  }

  /** What the client's body holds and which encoding it wants does not matter here (reference redis 4.5). */
  async #stream(key: LaneKey, command: readonly string[], guard: DatabaseGuard): Promise<void> {
    const row = findCommandByName(command[0] ?? '')
    if (!row?.allowed) throw new Error(`no row of the command table for the event path ${command[0]}`)
    const verdict = await guard.inspect(row, command, 0, askOver(this.#options.lanes.shared(key)))
    if (verdict) throw verdict
    guard.count(row, 1)
    const exchange = { request: this.#request, response: this.#response, answers: this.#answers, meter: guard.meter }
    const stream = new EventStream(this.#options.lanes, key, exchange)
    this.#streams.add(stream)
    this.#response.on('close', () => this.#streams.delete(stream))
    stream.open(command)
  }

  async #pipeline({ link, guard }: Lane, body: Buffer, form: ReplyForm): Promise<void> {
    const slots = await permitEach(guard, this.#readSlots(body), askOver(link))
    const replies = await runMeasured(guard, slots, () => sendPipeline(link, slots))
    guard.meter.bytesOut += replies.length
    if (form.format === 'resp2') return this.#answers.bytes(this.#request, this.#response, replies)
    const read = readPipeline(slots, replies, form.encoding)
    this.#answers.ok(this.#request, this.#response, `[${read.map(replyJson).join(',')}]`)
  }

  /** Always answers in JSON, whatever the response format (reference redis 4.2). */
  async #transaction({ link, guard }: Lane, body: Buffer, form: ReplyForm): Promise<void> {
    const slots = await permitAll(guard, this.#readSlots(body), askOver(link))
    const outcome = await runMeasured(guard, slots, () => runTransaction(link, slots, form.encoding))
    if ('error' in outcome) return this.#answers.error(this.#request, this.#response, 400, outcome.error)
    const json = `[${outcome.map(replyJson).join(',')}]`
    guard.meter.bytesOut += json.length
    this.#answers.ok(this.#request, this.#response, json)
  }

  #readSlots(body: Buffer): readonly Slot[] {
    return prepareSlots(parsePipeline(body.toString()))
  }
}

function malformed(problem: string): HomeportError {
  return new HomeportError('command_malformed', { problem })
}
