import { randomBytes } from 'node:crypto'
import { arrayLength, ElementReader } from '../resp/elements.js'
import { encodeTextCommand } from '../resp/encode.js'
import { joinInSlices } from '../resp/join-in-slices.js'
import type { LentBytes } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import type { EngineLink } from './engine-link.js'
import { ExecWatch, type FillReply } from './exec-watch.js'
import { type Frame, GatheredFrame, type LongFrame } from './gathered-frame.js'
import { type Greeting, greetingCommand, type LinkIdentity, readGreeting } from './greeting.js'
import { ReplyGate, type ReplyLimits } from './reply-gate.js'
import { CollectedReplies } from './reply-sink.js'
import { type Subscribed, SubscriptionCounts } from './subscription-counts.js'

/** A command that no engine knows. In every state of a connection its reply is an error that contains the nonce. */
const MARK = 'HOMEPORT.MARK'

const unknownMark = (nonce: string): readonly string[] => [MARK, nonce]

/**
 * A mark that is a subcommand of CLIENT. CLIENT CACHING applies to the next command: an unknown command would use it up, a
 * subcommand of CLIENT does not. Every engine user may send CLIENT LIST, because the gateway answers that of clients itself.
 */
const markOfClient = (nonce: string): readonly string[] => ['CLIENT', 'LIST', 'TYPE', nonce]

/** Makes the engine answer with an error, and an open transaction on its connection fail as a whole. */
export const POISON = encodeTextCommand([MARK])

/** The beginning of a line of MONITOR. No other simple string of an engine begins like that. */
const MONITOR_LINE = /^\+\d+\.\d+ \[/

/** Changes a whole frame on its way to the client. An empty result is dropped. */
export type FrameFilter = (frame: Buffer) => Buffer

interface Mark {
  /** Text that the error of the mark contains. */
  readonly nonce: string
  /** Beginning of the error while the engine runs a long script; undefined if the error always contains the nonce. */
  readonly whileBusy: string | undefined
  /** Called when the error of the mark arrives. */
  readonly arrive: () => void
}

/** A HELLO that was sent and is not yet answered. */
interface AwaitedGreeting {
  /** Protocol version after the reply. */
  readonly protocol: 2 | 3
  readonly arrive: (greeting: Greeting | undefined) => void
}

const BUSY = '-BUSY '
const PUSH = 0x3e
const MINUS = 0x2d
/** Bytes of a frame that tell its kind. */
const KIND_BYTES = 32
/** A message or a confirmation in RESP2. */
const MESSAGE = /^\*[34]\r\n\$\d+\r\n[ps]?(?:message|(?:un)?subscribe)\r\n/

/**
 * First bytes of the replies of a kind. Messages never begin with the bytes of `number`. In RESP2 they may begin with those
 * of `facts`, but there no command asks for facts while the client has subscriptions.
 */
const REPLY_TYPES = { number: ':-', facts: '*%-' } as const

type ReplyKind = keyof typeof REPLY_TYPES

/**
 * Everything that an engine sends on a dedicated lane that may get messages. Counting cannot distinguish replies from
 * messages there. So a *mark* keeps the place of a reply of the gateway: the gateway sends a command that no engine knows,
 * and replaces its error with the reply when the error arrives.
 *
 * A mark also shows that everything sent before it has been answered.
 *
 * Frames are gathered whole only while a mark is pending or a filter is set; otherwise bytes pass as they arrive.
 */
export class DedicatedStream {
  #filter: FrameFilter | undefined
  readonly #link: Pick<EngineLink, 'sendStreamed'>
  readonly #toClient: (bytes: Buffer) => void
  readonly #framer = new ReplyFramer()
  #marks: Mark[] = []
  /** The filter for the next reply that is an error or of this kind. */
  #next: { readonly kind: ReplyKind; readonly filter: FrameFilter } | undefined
  /** The filter for push messages, in RESP3. */
  #pushFilter: FrameFilter | undefined
  #protocol: 2 | 3
  #greeting: AwaitedGreeting | undefined
  /** Which replies the client wants: all, none, or all but the next one. */
  #replies: 'on' | 'off' | 'skip' = 'on'
  readonly #exec = new ExecWatch()
  /** Frames that arrive while the gateway joins a long frame or completes the reply to EXEC. They wait. */
  #late: Frame[] | undefined
  readonly #subscriptions = new SubscriptionCounts()
  readonly #gathered = new GatheredFrame()
  /** Whether the beginning of the current frame was passed on, so its rest has to be, too. */
  #passing = false

  /** `protocol` is the client's protocol version. `toClient` gets the bytes of the engine and the inserted replies. */
  constructor(link: Pick<EngineLink, 'sendStreamed'>, protocol: 2 | 3, toClient: (bytes: Buffer) => void) {
    this.#link = link
    this.#toClient = toClient
    this.#protocol = protocol
  }

  /** Whether there were subscriptions when `subscriptions` last resolved. */
  get isSubscribed(): boolean {
    return this.#subscriptions.total > 0
  }

  /** The subscriptions when `subscriptions` last resolved. */
  get subscribed(): Subscribed {
    return this.#subscriptions.byKind
  }

  /** Passes every frame through `filter` from now on: the client monitors. Long lines are cut. */
  filterWith(filter: FrameFilter): void {
    this.#filter = filter
    this.#gathered.cutsLines = true
  }

  /** Starts or stops dropping replies. */
  muteReplies(muted: boolean): void {
    this.#replies = muted ? 'off' : 'on'
  }

  /** Whether the next reply will be dropped, because the client has skipped it. */
  get skipsReply(): boolean {
    return this.#replies === 'skip'
  }

  /** Sets whether the next reply is dropped. */
  skipReply(skipped: boolean): void {
    if (this.#replies !== 'off') this.#replies = skipped ? 'skip' : 'on'
  }

  /** Call before MULTI is sent. The reply to its EXEC goes through `fill`; frames behind it wait. */
  openTransaction(fill: FillReply): void {
    this.#mark(() => this.#exec.begin(fill))
  }

  /** Like `openTransaction`, for a transaction that is already open. Only while nothing is pending. */
  resumeTransaction(fill: FillReply): void {
    this.#exec.resume(fill)
  }

  /** Resolves when the reply to EXEC, the last command, has been completed and passed on. */
  executed(): Promise<void> {
    return new Promise((resolve) =>
      this.#mark(() => {
        this.#exec.end()
        resolve()
      }),
    )
  }

  /** Inserts a reply of the gateway behind the replies to everything sent so far. Discards an open transaction. */
  insert(reply: Buffer): void {
    this.#mark(() => this.#pass(reply))
  }

  /** Calls back when everything sent so far has been answered. Discards an open transaction. */
  whenAnswered(answered: () => void): void {
    this.#mark(answered)
  }

  /**
   * Resolves to the number of subscriptions once everything sent so far has been answered. Only the last command since the
   * previous call may have changed them. Discards an open transaction.
   */
  subscriptions(): Promise<number> {
    return new Promise((resolve) => this.#mark(() => resolve(this.#subscriptions.total)))
  }

  /**
   * Call before HELLO is sent, while nothing is pending. Resolves to its reply, which does not go to the client; undefined
   * when it is an error. The engine speaks `protocol` after a successful reply.
   */
  greeted(protocol: 2 | 3): Promise<Greeting | undefined> {
    return new Promise((arrive) => {
      this.#greeting = { protocol, arrive }
    })
  }

  /** Records that the engine now uses this protocol version. */
  speak(protocol: 2 | 3): void {
    this.#protocol = protocol
  }

  /** Call before a subcommand of CLIENT is sent. Its reply, an error or one of this kind, goes through `filter`. */
  filterNext(kind: ReplyKind, filter: FrameFilter): void {
    this.#mark(() => {
      this.#next = { kind, filter }
    }, markOfClient)
  }

  /** Passes every push message through `filter` from now on, in RESP3. */
  filterPushes(filter: FrameFilter): void {
    this.#pushFilter = filter
  }

  #mark(arrive: () => void, commandOf = unknownMark): void {
    const nonce = randomBytes(12).toString('hex')
    this.#marks.push({ nonce, whileBusy: commandOf === markOfClient ? BUSY : undefined, arrive })
    const command = Buffer.from(encodeTextCommand(commandOf(nonce)))
    this.#link.sendStreamed(command, 0, command.length)
  }

  /** Makes a gate in front of this stream. Its limits do not apply to a RESP2 subscriber, who gets only messages. */
  behind(limits: ReplyLimits): ReplyGate {
    this.#gathered.memory = limits.held
    const getsReplies = (): boolean => this.#protocol === 3 || !this.isSubscribed
    const taker = {
      isEmpty: false,
      headCount: Number.POSITIVE_INFINITY,
      deliver: (chunk: LentBytes, start: number, end: number) => this.push(chunk.subarray(start, end)),
      deliverHeld: (pieces: readonly LentBytes[]) => {
        const last = pieces.length - 1
        pieces.forEach((piece, place) => {
          this.#take(piece, place === last)
        })
      },
    }
    return new ReplyGate(taker, {
      reword: limits.reword,
      held: limits.held,
      get maxReplyBytes() {
        return getsReplies() ? limits.maxReplyBytes : Number.POSITIVE_INFINITY
      },
    })
  }

  /** Takes the next chunk of the engine. @throws ReplyFormatError */
  push(chunk: LentBytes): void {
    let from = 0
    while (from < chunk.length) {
      const end = this.#framer.scan(chunk, from, 1)
      this.#take(chunk.subarray(from, end), this.#framer.completed === 1)
      from = end
    }
  }

  #take(piece: Buffer, ends: boolean): void {
    if (this.#passing || (!this.#inspects && this.#gathered.isEmpty)) {
      this.#passing = !ends
      this.#toClient(piece)
      return
    }
    const frame = this.#gathered.take(piece, ends)
    if (frame) this.#emit(frame)
  }

  #emit(frame: Frame): void {
    if (this.#late) {
      this.#gathered.memory?.add(frame.length)
      this.#late.push(frame)
      return
    }
    const work = Buffer.isBuffer(frame) ? this.#handle(frame) : this.#joinAndHandle(frame)
    if (work) void this.#emitLateAfter(work)
  }

  /** Keeps the frames that arrive meanwhile until `work` is done. `work` never rejects. */
  async #emitLateAfter(work: Promise<void>): Promise<void> {
    this.#late = []
    await work
    const late = this.#late
    this.#late = undefined
    for (const frame of late) {
      this.#gathered.memory?.add(-frame.length)
      this.#emit(frame)
    }
  }

  async #joinAndHandle({ pieces, length }: LongFrame): Promise<void> {
    this.#gathered.memory?.add(length)
    const frame = await joinInSlices(pieces)
    this.#gathered.memory?.add(-length)
    await this.#handle(frame)
  }

  /** @returns a promise if more work is needed before the next frame */
  #handle(frame: Buffer): Promise<void> | undefined {
    const mark = this.#marks[0]
    if (mark && frame[0] === MINUS && isErrorOf(mark, frame)) {
      this.#marks.shift()
      mark.arrive()
      return undefined
    }
    if (this.#greeting && this.#takeGreeting(this.#greeting, frame)) return undefined
    this.#subscriptions.note(frame)
    const fill = this.#exec.isWatching && this.#mayBeReply(frame) ? this.#exec.see(frame) : undefined
    if (fill) return this.#fill(frame, fill)
    this.#pass(this.#filtered(frame))
    return undefined
  }

  /** @returns whether the frame answers HELLO; a message may arrive before it */
  #takeGreeting({ protocol, arrive }: AwaitedGreeting, frame: Buffer): boolean {
    const greeting = readGreeting(frame)
    if (!greeting && frame[0] !== MINUS) return false
    this.#greeting = undefined
    if (greeting) this.#protocol = protocol
    arrive(greeting)
    return true
  }

  /** Completes the reply to EXEC. Never rejects, because `fill` does not. */
  async #fill(reply: Buffer, fill: FillReply): Promise<void> {
    // The reply also contains the confirmations of subscriptions in the transaction.
    const elements = new ElementReader(reply)
    for (let left = arrayLength(reply) ?? 0; left > 0; left--) this.#subscriptions.note(await elements.take(1))
    this.#pass(await fill(reply))
  }

  /** Whether frames have to be gathered whole. */
  get #inspects(): boolean {
    const filters = this.#filter !== undefined || this.#next !== undefined || this.#filtersPushes
    const awaits = this.#marks.length > 0 || this.#greeting !== undefined
    const waits = awaits || this.#exec.isWatching || this.#late !== undefined
    return filters || waits || this.#replies !== 'on'
  }

  get #filtersPushes(): boolean {
    return this.#pushFilter !== undefined && this.#protocol === 3
  }

  #pass(frame: Buffer): void {
    if (frame.length === 0) return
    if (this.#replies === 'on' || isMessage(frame, this.#protocol)) this.#toClient(frame)
    else if (this.#replies === 'skip' && this.#mayBeReply(frame)) this.#replies = 'on'
    else if (this.#replies === 'skip') this.#toClient(frame)
  }

  /** In RESP2 nothing is subscribed inside a transaction, so everything but a line of MONITOR is a reply. */
  #mayBeReply(frame: Buffer): boolean {
    if (this.#protocol === 3 && frame[0] === PUSH) return false
    return !MONITOR_LINE.test(frame.toString('latin1', 0, KIND_BYTES))
  }

  #filtered(frame: Buffer): Buffer {
    const next = this.#next
    if (next && REPLY_TYPES[next.kind].includes(String.fromCharCode(frame[0] ?? 0))) {
      this.#next = undefined
      return next.filter(frame)
    }
    if (this.#filtersPushes && this.#pushFilter && frame[0] === PUSH) return this.#pushFilter(frame)
    return this.#filter ? this.#filter(frame) : frame
  }
}

/** Whether a frame is the error of a mark. A BUSY error of the command just before the mark serves the purpose too. */
function isErrorOf({ nonce, whileBusy }: Mark, frame: Buffer): boolean {
  return (
    frame.includes(nonce) || (whileBusy !== undefined && frame.toString('latin1', 0, whileBusy.length) === whileBusy)
  )
}

function isMessage(frame: Buffer, protocol: 2 | 3): boolean {
  return protocol === 3 ? frame[0] === PUSH : MESSAGE.test(frame.toString('latin1', 0, KIND_BYTES))
}

/**
 * Changes the user and protocol version of a connection with HELLO. Watched keys, subscriptions and tracking stay. Only
 * while no reply is pending.
 * @returns the engine's reply; undefined when it refuses or is lost
 */
export function introduce(
  link: EngineLink,
  stream: DedicatedStream | undefined,
  identity: LinkIdentity,
): Promise<Greeting | undefined> {
  const command = greetingCommand(identity)
  if (stream) {
    const greeted = stream.greeted(identity.protocol)
    const bytes = Buffer.from(command)
    link.sendStreamed(bytes, 0, bytes.length)
    return greeted
  }
  return new Promise((resolve) => {
    const answered = (reply: Buffer): void => resolve(readGreeting(reply))
    link.sendText(new CollectedReplies(1, answered, () => resolve(undefined)), command, 1)
  })
}
