import { administer } from '../administer.js'
import { copied } from '../resp/lent-memory.js'
import type { Entrance } from './entrances.js'
import type { Exchange } from './exchange.js'
import { replyJson } from './http-answers.js'
import { parseCommand, parsePipeline } from './json-commands.js'
import { pathCommand, type Target } from './path-command.js'
import { permitAll, permitEach } from './permit.js'
import { type PreparedCommand, prepareCommand } from './prepare.js'
import { readReplies, replyBytes } from './read-replies.js'
import type { ReplyForm } from './reply-form.js'
import type { RestListenerOptions } from './rest-listener.js'
import { RequestLane, runSlots } from './run-slots.js'
import { runTransaction, type TransactionOutcome } from './run-transaction.js'
import type { RepliesReader } from './send-commands.js'
import { checkArities, isPrepared, prepareSlots, type Slot } from './slots.js'

/** What the commands of a request are to each other. */
type Kind = 'single' | 'pipeline'

/** The commands of one request, from its body to its answer. */
export class CommandRequest implements RepliesReader {
  readonly #exchange: Exchange
  readonly #options: RestListenerOptions
  readonly #entrance: Entrance
  readonly #form: ReplyForm
  readonly #lane: RequestLane
  #kind: Kind = 'single'
  #slots: readonly Slot[] = []

  constructor(exchange: Exchange, options: RestListenerOptions, entrance: Entrance, form: ReplyForm) {
    this.#exchange = exchange
    this.#options = options
    this.#entrance = entrance
    this.#form = form
    const nearby = options.lanes.nearby(entrance.key)
    const moment = nearby ? exchange.moment : 0
    this.#lane = new RequestLane(entrance, nearby, moment, (command) => this.#administer(command))
  }

  /** Carries the commands out and answers. @throws HomeportError what is wrong with the request as a whole */
  run(target: Target, body: Buffer): void {
    switch (target.path) {
      case '/pipeline':
        this.#kind = 'pipeline'
        this.#permit(readPipeline(body))
        return
      case '/multi-exec':
        this.#transact(checkArities(readPipeline(body)))
        return
      case '/':
        this.#permit([prepareCommand(parseCommand(body.toString()))])
        return
      default:
        this.#permit([prepareCommand(pathCommand(target, body))])
    }
  }

  onReplies(replies: Buffer): void {
    this.#lane.guard.meter.bytesOut += replies.length
    try {
      this.#answer(replies)
    } catch (error) {
      this.#exchange.fail(error)
    }
  }

  onLost(error: unknown): void {
    this.#exchange.fail(error)
  }

  /** Goes on at once where no engine has to be asked about a limit. */
  #permit(slots: readonly Slot[]): void {
    const permitted = permitEach(this.#lane, slots)
    if (permitted instanceof Promise) {
      permitted.then((ruled) => this.#send(ruled)).catch((error: unknown) => this.#exchange.fail(error))
    } else this.#send(permitted)
  }

  #send(slots: readonly Slot[]): void {
    const [first] = slots
    if (this.#kind === 'single' && first && !isPrepared(first)) throw first
    this.#slots = slots
    runSlots(this.#lane, slots, this)
  }

  #answer(replies: Buffer): void {
    const { format, encoding } = this.#form
    const moment = this.#lane.nearby?.moment
    if (format === 'resp2') {
      this.#exchange.answerBytes(copied(replyBytes(this.#slots, replies)), moment)
      return
    }
    const read = readReplies(this.#slots, replies, encoding)
    const [first] = read
    if (this.#kind === 'pipeline') this.#exchange.answer(`[${read.map(replyJson).join(',')}]`, moment)
    else if (first && 'error' in first) this.#exchange.answerError(400, first.error)
    else if (first) this.#exchange.answer(replyJson(first), moment)
  }

  /** Always answers in JSON, whatever the response format (reference redis 4.2). */
  #transact(slots: readonly Slot[]): void {
    permitAll(this.#lane, slots)
      .then((permitted) => runTransaction(this.#lane, permitted, this.#form.encoding))
      .then((outcome) => this.#answerTransaction(outcome))
      .catch((error: unknown) => this.#exchange.fail(error))
  }

  #answerTransaction(outcome: TransactionOutcome): void {
    if ('error' in outcome) {
      this.#exchange.answerError(400, outcome.error)
      return
    }
    const json = `[${outcome.map(replyJson).join(',')}]`
    this.#lane.guard.meter.bytesOut += json.length
    this.#exchange.answer(json, this.#lane.nearby?.moment)
  }

  #administer({ command, args }: PreparedCommand): Promise<Buffer> {
    const { database, user } = this.#entrance.access
    const { databaseId } = database
    const address = this.#exchange.address ?? ''
    return administer(
      this.#options,
      { databaseId, user, address, name: command.name, args: args.slice(2).map(String) },
      2,
    )
  }
}

function readPipeline(body: Buffer): readonly Slot[] {
  return prepareSlots(parsePipeline(body.toString()))
}
