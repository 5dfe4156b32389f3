import type { HomeportError } from '../../contract/errors/errors.js'
import { administer } from '../commands/administer.js'
import { selectReply } from '../commands/session-commands.js'
import { copied, kept } from '../resp/lent-memory.js'
import { type BodyCommand, BodyUpload } from './body-upload.js'
import type { Exchange } from './exchange.js'
import type { ReplyForm } from './http-answers.js'
import { replyJson } from './http-answers.js'
import { LARGE_JSON_BYTES, readLargeCommand, readLargePipeline } from './large-json.js'
import { parseCommand, parsePipeline, pathCommand, type Target } from './parse-commands.js'
import { measure, permitAll, permitEach, permitInTurns, turnOf, whenResumed } from './permit.js'
import {
  PatientReader,
  READ_AT_ONCE_BYTES,
  ReplyReader,
  type RestReply,
  readReplies,
  replyBytes,
  replyBytesInTurns,
} from './reply-reader.js'
import type { RestListenerOptions } from './rest-listener.js'
import { type RequestEnds, RequestLane, runSlots, runTransaction, type TransactionOutcome } from './run-commands.js'
import type { LargeSink, RepliesReader } from './send-commands.js'
import {
  checkArities,
  inDialect,
  isPrepared,
  type PreparedCommand,
  prepareCommand,
  prepareSlots,
  type Slot,
} from './slots.js'
import type { StreamedPipeline } from './streamed-answer.js'
import type { TokenGrant } from './token-grants.js'

/** What the commands of a request are to each other. */
type Kind = 'single' | 'pipeline'

/** The commands of one request, from its body to its answer. */
export class CommandRequest implements RepliesReader, RequestEnds {
  readonly #exchange: Exchange
  readonly #options: RestListenerOptions
  readonly #grant: TokenGrant
  readonly #form: ReplyForm
  readonly #lane: RequestLane
  #kind: Kind = 'single'
  /** Where large replies are answered while they come. */
  #streamed: StreamedPipeline | undefined
  #slots: readonly Slot[] = []

  constructor(exchange: Exchange, options: RestListenerOptions, grant: TokenGrant, form: ReplyForm) {
    this.#exchange = exchange
    this.#options = options
    this.#grant = grant
    this.#form = form
    const replica = options.lanes.replica(grant.key)
    const moment = replica ? exchange.moment : 0
    this.#lane = new RequestLane(grant, replica, moment, this)
  }

  /** Carries the commands out and answers. @throws HomeportError what is wrong with the request as a whole */
  run(target: Target, body: Buffer): void {
    switch (target.path) {
      case '/pipeline':
      case '/pipeline/':
        this.#kind = 'pipeline'
        if (body.length > LARGE_JSON_BYTES) this.#later(this.#runLargePipeline(body))
        else this.#permit(readPipeline(body))
        return
      case '/multi-exec':
      case '/multi-exec/':
        this.#later(this.#runTransaction(body))
        return
      case '/':
        if (body.length > LARGE_JSON_BYTES) this.#later(this.#runLargeCommand(body))
        else this.#permit([prepareCommand(parseCommand(body.toString()))])
        return
      default:
        this.#permit([prepareCommand(pathCommand(target, body))])
    }
  }

  /** What goes wrong in work that is done in slices, between which others are served, is answered like anything else. */
  #later(work: Promise<void>): void {
    work.catch((error: unknown) => this.#exchange.fail(error))
  }

  async #runLargePipeline(body: Buffer): Promise<void> {
    const slots = await this.#readPipeline(body)
    await this.#whenResumed(slots)
    this.#send(await permitInTurns(this.#lane, slots))
  }

  async #runLargeCommand(body: Buffer): Promise<void> {
    this.#permit([prepareCommand(await readLargeCommand(body))])
  }

  /** Always answers in JSON, whatever the response format (reference redis 4.2). */
  async #runTransaction(body: Buffer): Promise<void> {
    const slots = checkArities(body.length > LARGE_JSON_BYTES ? await this.#readPipeline(body) : readPipeline(body))
    await this.#whenResumed(slots)
    const permitted = await permitAll(this.#lane, slots)
    this.#noteForMonitors(permitted)
    this.#answerTransaction(await runTransaction(this.#lane, this.#inDialect(permitted), this.#form.encoding))
  }

  #readPipeline(body: Buffer): Promise<readonly Slot[]> {
    return readLargePipeline(body, { commands: this.#lane.guard.maxRequestCommands })
  }

  /** Carries one command out while its body comes, and answers. */
  upload(body: BodyCommand): void {
    const { command, before, behind } = body
    // Nobody reads the value here, only how many arguments there are.
    const prepared: PreparedCommand = { wire: '', command, args: [...before, '', ...behind] }
    this.#slots = [prepared]
    this.#whenPermitted(body)
      .then(() => this.#sendBody(body, measure(this.#lane.guard, this.#slots.filter(isPrepared))))
      .catch((error: unknown) => this.#exchange.fail(error))
  }

  async #whenPermitted({ command, before, bodyBytes }: BodyCommand): Promise<void> {
    const { guard, ask } = this.#lane
    await this.#whenResumed(this.#slots)
    const bytes = bodyBytes + before.reduce((sum, arg) => sum + Buffer.byteLength(arg), 0)
    const verdict = await guard.inspectUpload(command, before, { bytes, valueBytes: bodyBytes }, ask)
    if (verdict) throw verdict
    await turnOf(guard, 1)
    guard.count(command, 1)
  }

  #sendBody(body: BodyCommand, settled: () => void): void {
    const { request } = this.#exchange
    const { replica } = this.#lane
    this.#lane.guard.meter.bytesIn += body.bodyBytes + (request.url?.length ?? 0)
    new BodyUpload(this.#options.lanes, this.#grant.key, request, body).start({
      onReply: (reply) => {
        settled()
        replica?.sawPrimary()
        this.onReplies(reply)
      },
      onLost: (error) => {
        settled()
        replica?.sawPrimary()
        this.onLost(error)
      },
    })
    this.#exchange.welcomeBody()
  }

  onReplies(replies: Buffer): void {
    this.#lane.guard.meter.bytesOut += replies.length
    try {
      if (replies.length > READ_AT_ONCE_BYTES) this.#answerInTurns(kept(replies)).catch((error) => this.onLost(error))
      else if (this.#streamed) this.#streamed.end(replies)
      else if (!this.#exchange.isAnswered) this.#answer(replies)
    } catch (error) {
      this.onLost(error)
    }
  }

  onLarge(before: () => Buffer, count: number, bytes: number): LargeSink | undefined {
    if (this.#exchange.isAnswered && !this.#streamed) return UNWANTED
    const replies = before()
    this.#lane.guard.meter.bytesOut += replies.length + bytes
    if (this.#kind === 'single') return this.#exchange.beginLarge(this.#form, bytes)
    this.#streamed ??= this.#exchange.beginPipeline(this.#form, this.#slots)
    try {
      return this.#streamed.large(replies, count, bytes)
    } catch (error) {
      this.onLost(error)
      return UNWANTED
    }
  }

  onHeld(bytes: number): HomeportError | undefined {
    return this.#exchange.holdReplies(bytes)
  }

  onLost(error: unknown): void {
    if (this.#streamed) this.#streamed.breakOff()
    else this.#exchange.fail(error)
  }

  /** Goes on at once where nothing is paused and no engine has to be asked about a limit. */
  #permit(slots: readonly Slot[]): void {
    if (this.#lane.guard.pause.mode !== undefined)
      this.#later(this.#whenResumed(slots).then(() => this.#inspect(slots)))
    else this.#inspect(slots)
  }

  #whenResumed(slots: readonly Slot[]): Promise<void> {
    return whenResumed(this.#lane.guard, slots, this.#exchange)
  }

  #inspect(slots: readonly Slot[]): void {
    const permitted = permitEach(this.#lane, slots)
    if (permitted instanceof Promise) {
      permitted.then((ruled) => this.#send(ruled)).catch((error: unknown) => this.#exchange.fail(error))
    } else this.#send(permitted)
  }

  #send(slots: readonly Slot[]): void {
    const [first] = slots
    if (this.#kind === 'single' && first && !isPrepared(first)) throw first
    this.#slots = slots
    this.#noteForMonitors(slots)
    runSlots(this.#lane, this.#inDialect(slots), this)
  }

  #answer(replies: Buffer): void {
    const { format, encoding } = this.#form
    const moment = this.#lane.replica?.moment
    if (format === 'resp2') {
      this.#exchange.answerBytes(copied(replyBytes(this.#slots, replies)), moment)
      return
    }
    const read = readReplies(this.#slots, replies, encoding)
    const [first] = read
    if (this.#kind === 'pipeline') this.#exchange.answer(`[${read.map(replyJson).join(',')}]`, moment)
    else if (first) this.#answerOne(first)
  }

  async #answerInTurns(replies: Buffer): Promise<void> {
    const { format, encoding } = this.#form
    const moment = this.#lane.replica?.moment
    if (!this.#streamed && this.#exchange.isAnswered) return
    if (this.#streamed) await this.#streamed.endInTurns(replies)
    else if (format === 'resp2') this.#exchange.answerBytes(await replyBytesInTurns(this.#slots, replies), moment)
    else if (this.#kind === 'single')
      this.#answerOne(await new PatientReader(new ReplyReader(replies, encoding)).next())
    else {
      this.#streamed = this.#exchange.beginPipeline(this.#form, this.#slots, moment)
      await this.#streamed.endInTurns(replies)
    }
  }

  #answerOne(reply: RestReply): void {
    if ('error' in reply) this.#exchange.answerError(400, reply.error)
    else this.#exchange.answer(replyJson(reply), this.#lane.replica?.moment)
  }

  #inDialect(slots: readonly Slot[]): readonly Slot[] {
    return this.#grant.access.user === 'default' ? inDialect(slots) : slots
  }

  /** Tells those who monitor the database what is sent. */
  #noteForMonitors(slots: readonly Slot[]): void {
    const { monitors } = this.#lane.guard
    if (!monitors.isWatched) return
    const { address = '', request } = this.#exchange
    for (const { command: row, args: words } of slots.filter(isPrepared)) {
      monitors.note({ row, words, address: `${address}:${request.socket.remotePort ?? 0}`, isWhole: true })
    }
  }

  #answerTransaction(outcome: TransactionOutcome): void {
    if ('error' in outcome) {
      this.#exchange.answerError(400, outcome.error)
      return
    }
    const json = `[${outcome.map(replyJson).join(',')}]`
    this.#lane.guard.meter.bytesOut += json.length
    this.#exchange.answer(json, this.#lane.replica?.moment)
  }

  administer({ command, args }: PreparedCommand): Promise<Buffer> {
    if (command.name === 'SELECT') return Promise.resolve(selectReply(args.slice(1).map(String)))
    const { database, user } = this.#grant.access
    const { databaseId } = database
    const address = this.#exchange.address ?? ''
    return administer(
      this.#options,
      {
        databaseId,
        user,
        address,
        name: command.name,
        args: args.slice(command.name.includes('|') ? 2 : 1).map(String),
      },
      2,
      this.#lane.guard.clientCounts,
    )
  }
}

/** What comes behind an answer that says why it is not waited for. */
const UNWANTED: LargeSink = { take: () => {}, end: () => {}, breakOff: () => {} }

function readPipeline(body: Buffer): readonly Slot[] {
  return prepareSlots(parsePipeline(body.toString()))
}
