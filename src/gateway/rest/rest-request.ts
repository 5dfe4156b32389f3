import { unreachable } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { type AdministrationDeps, administer } from '../commands/administer.js'
import { selectReply } from '../commands/session-commands.js'
import type { Lanes } from '../engine/lanes.js'
import { isNotServedHere } from '../engine/unsent.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'
import { readSlots, type Shape, shapeOf } from './body-commands.js'
import { type BodyCommand, BodyUpload, bodyCommandOf } from './body-upload.js'
import { type EventStream, eventCommand, openEvents } from './event-stream.js'
import type { Exchange } from './exchange.js'
import { type ReplyForm, replyFormOf, replyJson } from './http-answers.js'
import type { Target } from './parse-commands.js'
import { permitAll, permitEach, permitEvents, permitInSlices, permitUpload, whenResumed } from './permit.js'
import { type LargeReplySink, type RepliesClient, type RepliesReader, UNWANTED } from './replies-reader.js'
import {
  READ_AT_ONCE_BYTES,
  ReplyReader,
  type RestReply,
  readReplies,
  replyBytes,
  replyBytesInSlices,
  SlicedReader,
} from './reply-reader.js'
import { type BodyReader, KEPT_BODY_BYTES, readBody, type UnsentBody } from './request-body.js'
import {
  type CommandRequest,
  RequestLane,
  runSlots,
  runTransaction,
  runUpload,
  showToMonitors,
} from './run-commands.js'
import { checkArities, isPrepared, type PreparedCommand, type Slot, translated } from './slots.js'
import type { StreamedPipeline } from './streamed-answer.js'
import type { TokenGrant } from './token-grants.js'

/** The collaborators that the requests of a listener share. */
export interface RestRequestDeps {
  readonly lanes: Lanes
  readonly administration: AdministrationDeps
  /** The open event streams. */
  readonly streams: Set<EventStream>
  /** Answers a request again, from its token on: the database has another home, and its engine here got no command. */
  readonly startAgain: (exchange: Exchange, target: Target, unsent: UnsentBody) => void
}

/**
 * The states of a request.
 *
 * ```
 *   receiving ──body──▶ checking ──permitted──▶ running ──replies──▶ answered
 *       │                                          └──large reply──▶ streaming ──last reply──▶ answered
 *       └──/subscribe, /psubscribe, /monitor──▶ subscribed
 *   any ──error──▶ answered
 * ```
 *
 * - receiving: the body is being read.
 * - checking: the commands are checked against the command table and the limits. That may take a while: a pause has to
 *   end, the engine has to be asked, or a large body is read in slices. A command with an uploaded body starts here.
 * - running: the commands were sent to the engine, or wait for their turn.
 * - streaming: a pipeline has a large reply, or many replies; its answer is written while they arrive.
 * - subscribed: an event stream has taken over the exchange.
 * - answered: the answer is written, or the sink of a large reply writes the rest of it.
 *
 * When memory is short, the exchange answers or breaks off by itself. The request checks `exchange.isAnswered` before the
 * commands run and when the next replies arrive.
 */
type RequestState =
  | { readonly kind: 'receiving' }
  | Checking
  | Running
  | { readonly kind: 'streaming'; readonly answer: StreamedPipeline }
  | { readonly kind: 'subscribed' }
  | { readonly kind: 'answered' }

interface Checking {
  readonly kind: 'checking'
  readonly shape: Shape
  readonly lane: RequestLane
}

interface Running {
  readonly kind: 'running'
  readonly shape: Shape
  readonly lane: RequestLane
  readonly slots: readonly Slot[]
}

const RECEIVING: RequestState = { kind: 'receiving' }
const SUBSCRIBED: RequestState = { kind: 'subscribed' }
const ANSWERED: RequestState = { kind: 'answered' }

/** A request with a valid token, from its body to its answer. */
export class RestRequest implements BodyReader, RepliesReader, CommandRequest {
  readonly #exchange: Exchange
  readonly #deps: RestRequestDeps
  readonly #grant: TokenGrant
  readonly #target: Target
  readonly #form: ReplyForm
  #state: RequestState = RECEIVING
  /** Undefined before the body was read, once an engine gets it, and when it is too long to be kept. */
  #unsent: UnsentBody | undefined

  /** @throws HomeportError when the headers ask for an unknown form of the answer */
  constructor(exchange: Exchange, deps: RestRequestDeps, grant: TokenGrant, target: Target) {
    this.#exchange = exchange
    this.#deps = deps
    this.#grant = grant
    this.#target = target
    const form = replyFormOf(exchange.request.headers)
    // The answer to a transaction is always JSON, regardless of the response format (reference redis 4.2).
    this.#form = shapeOf(target) === 'transaction' ? { ...form, format: 'json' } : form
  }

  /** Starts to read the body, or to pass it on, unless it was read before. */
  receive(unsent: UnsentBody = 'unread'): void {
    const { guard, key } = this.#grant
    guard.touch()
    this.#exchange.owner = key.databaseId
    this.#exchange.maxReplyBytes = guard.maxRequestBytes
    const { request } = this.#exchange
    const uploaded = bodyCommandOf(this.#target, request, guard.maxRequestBytes)
    if (unsent !== 'unread') this.onBody(unsent)
    else if (uploaded) this.#upload(uploaded)
    else {
      readBody(request, guard.maxRequestBytes, this)
      this.#exchange.sendContinue()
    }
  }

  onBody(body: Buffer): void {
    if (body.length <= KEPT_BODY_BYTES) this.#unsent = body
    try {
      this.#countBytesIn(body.length)
      // The body and the encoding that the client asks for do not matter to an event stream (reference redis 4.5).
      const events = eventCommand(this.#target)
      if (events) this.#inBackground(this.#subscribe(events))
      else this.#read(body)
    } catch (error) {
      this.onLost(error)
    }
  }

  onBodyRefused(error: HomeportError): void {
    this.onLost(error)
  }

  onBodyHeld(bytes: number): boolean {
    try {
      return this.#exchange.holdBody(bytes)
    } catch (error) {
      this.onLost(error)
      return false
    }
  }

  /** receiving → checking, for commands that have arrived whole. @throws HomeportError if the whole body is wrong */
  #read(body: Buffer): void {
    const checking = this.#startChecking(shapeOf(this.#target))
    const slots = readSlots(this.#target, body, this.#grant.guard.maxRequestCommands)
    if (checking.shape === 'transaction') this.#inBackground(this.#runTransaction(checking, slots))
    else if (slots instanceof Promise) this.#inBackground(this.#checkLarge(checking, slots))
    else this.#check(checking, slots)
  }

  #startChecking(shape: Shape): Checking {
    const replica = this.#deps.lanes.replica(this.#grant.key)
    const moment = replica ? this.#exchange.moment : 0
    const lane = new RequestLane(this.#grant, replica, moment, this)
    const checking: Checking = { kind: 'checking', shape, lane }
    this.#state = checking
    return checking
  }

  async #checkLarge(checking: Checking, read: Promise<readonly Slot[]>): Promise<void> {
    const slots = await read
    await this.#whenResumed(slots)
    this.#run(checking, await permitInSlices(checking.lane, slots))
  }

  /** Checks the limits at once, unless the database is paused. */
  #check(checking: Checking, slots: readonly Slot[]): void {
    if (this.#grant.guard.pause.mode === undefined) this.#permit(checking, slots)
    else this.#inBackground(this.#whenResumed(slots).then(() => this.#permit(checking, slots)))
  }

  #whenResumed(slots: readonly Slot[]): Promise<void> {
    return whenResumed(this.#grant.guard, slots, this.#exchange)
  }

  /** Runs the commands at once, unless the engine has to be asked about a limit. */
  #permit(checking: Checking, slots: readonly Slot[]): void {
    const permitted = permitEach(checking.lane, slots)
    if (permitted instanceof Promise) this.#inBackground(permitted.then((ruled) => this.#run(checking, ruled)))
    else this.#run(checking, permitted)
  }

  /** checking → running. @throws HomeportError when the only command of the request is refused */
  #run({ lane, shape }: Checking, slots: readonly Slot[]): void {
    const [first] = slots
    if (shape === 'single' && first && !isPrepared(first)) throw first
    if (this.#start({ kind: 'running', shape, lane, slots })) runSlots(lane, this.#translated(slots), this)
  }

  /** checking → running, or → answered if the client has got an error meanwhile. @returns whether the commands run */
  #start(running: Running): boolean {
    const isWanted = !this.#exchange.isAnswered
    this.#state = isWanted ? running : ANSWERED
    if (isWanted) showToMonitors(this.#grant.guard, running.slots, this.#exchange)
    return isWanted
  }

  /** checking → running → answered, for a transaction. */
  async #runTransaction({ lane, shape }: Checking, read: readonly Slot[] | Promise<readonly Slot[]>): Promise<void> {
    const slots = checkArities(await read)
    await this.#whenResumed(slots)
    const permitted = await permitAll(lane, slots)
    if (!this.#start({ kind: 'running', shape, lane, slots: permitted })) return
    const outcome = await runTransaction(lane, this.#translated(permitted))
    if ('replies' in outcome) this.onReplies(outcome.replies)
    else {
      this.#state = ANSWERED
      this.#exchange.answerError(400, outcome.error)
    }
  }

  /** receiving → checking → running, for a command whose large body is passed on to the engine while it arrives. */
  #upload(body: BodyCommand): void {
    const { command, before, behind } = body
    const checking = this.#startChecking('single')
    // Only the number of arguments matters here, not the value.
    const prepared: PreparedCommand = { wire: '', command, args: [...before, '', ...behind] }
    this.#unsent = 'unread'
    this.#inBackground(
      this.#permitUpload(body, prepared).then(() => {
        this.#state = { ...checking, kind: 'running', slots: [prepared] }
        this.#countBytesIn(body.bodyBytes)
        const upload = new BodyUpload(this.#deps.lanes, this.#grant.key, this.#exchange.request, body)
        runUpload(checking.lane, upload, prepared, this)
      }),
    )
  }

  /** Called when an upload begins to read the body. */
  onBegin(): void {
    this.#unsent = undefined
    this.#exchange.sendContinue()
  }

  async #permitUpload(body: BodyCommand, prepared: PreparedCommand): Promise<void> {
    await this.#whenResumed([prepared])
    await permitUpload(this.#grant, body)
  }

  /** receiving → subscribed. */
  async #subscribe(command: readonly string[]): Promise<void> {
    await permitEvents(this.#grant, command)
    this.#state = SUBSCRIBED
    openEvents(this.#exchange, this.#grant, this.#deps, command)
  }

  /** Called when all replies have arrived, or the replies behind the last large one. */
  onReplies(replies: LentBytes): void {
    const state = this.#state
    this.#grant.guard.meter.bytesOut += replies.length
    try {
      switch (state.kind) {
        case 'running':
          this.#answer(state, replies)
          return
        case 'streaming':
          if (replies.length > READ_AT_ONCE_BYTES) this.#inBackground(this.#endStream(state.answer, keep(replies)))
          else {
            state.answer.end(replies)
            this.#state = ANSWERED
          }
          return
        case 'answered':
          return
        case 'receiving':
        case 'checking':
        case 'subscribed':
          throw new Error(`replies have arrived for a request that is ${state.kind}`)
        default:
          unreachable(state)
      }
    } catch (error) {
      this.onLost(error)
    }
  }

  /** Called when a large bulk string has begun. running → streaming, or → answered by the sink that is returned. */
  onLarge(before: () => Buffer, count: number, bytes: number): LargeReplySink | undefined {
    const state = this.#state
    const isWanted = state.kind === 'streaming' || (state.kind === 'running' && !this.#exchange.isAnswered)
    if (!isWanted) return UNWANTED
    const replies = before()
    this.#grant.guard.meter.bytesOut += replies.length + bytes
    if (state.kind === 'running' && state.shape === 'single') {
      this.#state = ANSWERED
      return this.#exchange.beginLarge(this.#form, bytes)
    }
    const answer = state.kind === 'running' ? this.#beginStream(state) : state.answer
    try {
      return answer.large(replies, count, bytes)
    } catch (error) {
      this.onLost(error)
      return UNWANTED
    }
  }

  get client(): RepliesClient {
    return this.#exchange
  }

  /** any → answered, with the error, or by the next home. An answer that has begun is broken off. */
  onLost(error: unknown): void {
    const state = this.#state
    this.#state = ANSWERED
    if (state.kind === 'streaming') state.answer.abort()
    else if (this.#unsent && isNotServedHere(error) && !this.#exchange.isAnswered)
      this.#deps.startAgain(this.#exchange, this.#target, this.#unsent)
    else this.#exchange.fail(error)
  }

  /** Reports a failure of asynchronous work like any other failure. */
  #inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.onLost(error))
  }

  #beginStream({ slots }: Running, moment?: number): StreamedPipeline {
    const answer = this.#exchange.beginPipeline(this.#form, slots, moment)
    this.#state = { kind: 'streaming', answer }
    return answer
  }

  /** streaming → answered. */
  async #endStream(answer: StreamedPipeline, replies: KeptBytes): Promise<void> {
    await answer.endInSlices(replies)
    this.#state = ANSWERED
  }

  /** running → answered, through streaming if there are many replies. */
  #answer(running: Running, replies: LentBytes): void {
    if (this.#exchange.isAnswered) return
    if (replies.length > READ_AT_ONCE_BYTES) {
      this.#inBackground(this.#answerInSlices(running, keep(replies)))
      return
    }
    const { lane, slots, shape } = running
    const { format, encoding } = this.#form
    const moment = lane.replica?.moment
    this.#state = ANSWERED
    if (format === 'resp2') {
      this.#exchange.answerBytes(keep(replyBytes(slots, replies)), moment)
      return
    }
    const read = readReplies(slots, replies, encoding)
    const [first] = read
    if (shape !== 'single') this.#exchange.answer(`[${read.map(replyJson).join(',')}]`, moment)
    else if (first) this.#answerOne(first, moment)
  }

  async #answerInSlices(running: Running, replies: KeptBytes): Promise<void> {
    const { lane, slots, shape } = running
    const { format, encoding } = this.#form
    const moment = lane.replica?.moment
    if (format === 'resp2') this.#exchange.answerBytes(await replyBytesInSlices(slots, replies), moment)
    else if (shape === 'single') {
      const reply = await new SlicedReader(new ReplyReader(replies, encoding)).next()
      if ('error' in reply) this.#exchange.answerError(400, reply.error)
      else await this.#exchange.answerLarge(reply.pieces, moment)
    } else await this.#endStream(this.#beginStream(running, moment), replies)
  }

  #answerOne(reply: RestReply, moment: number | undefined): void {
    if ('error' in reply) this.#exchange.answerError(400, reply.error)
    else this.#exchange.answer(replyJson(reply), moment)
  }

  #translated(slots: readonly Slot[]): readonly Slot[] {
    return this.#grant.access.user === 'default' ? translated(slots) : slots
  }

  #countBytesIn(bodyBytes: number): void {
    this.#grant.guard.meter.bytesIn += bodyBytes + (this.#exchange.request.url?.length ?? 0)
  }

  administer({ command, args }: PreparedCommand): Promise<Buffer> {
    const { name } = command
    if (name === 'SELECT') return Promise.resolve(selectReply(args.slice(1).map(String)))
    const { databaseId, user } = this.#grant.key
    const words = args.slice(name.includes('|') ? 2 : 1).map(String)
    const request = { databaseId, user, address: this.#exchange.address ?? '', name, args: words }
    const idOf = () => this.#exchange.requestId
    return administer(this.#deps.administration, request, 2, this.#grant.guard.clientCounts, idOf)
  }
}
