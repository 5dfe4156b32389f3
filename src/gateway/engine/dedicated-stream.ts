import { randomBytes } from 'node:crypto'
import { encodeTextCommand } from '../resp/encode.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import type { EngineLink } from './engine-link.js'
import { ExecWatch, type FillReply } from './exec-watch.js'
import { type Greeting, greetingCommand, type LinkIdentity, readGreeting } from './greeting.js'
import { ReplyGate, type ReplyLimits } from './reply-gate.js'
import { CollectedReplies } from './reply-sink.js'

/** A command that no engine knows. Its reply is an error with our nonce in it, in every state of a connection. */
const MARK = 'HOMEPORT.MARK'

const unknownMark = (nonce: string): readonly string[] => [MARK, nonce]

/**
 * The same by a subcommand of CLIENT: what CLIENT CACHING has said of the next command outlives those, but no unknown
 * command. Every user may send it, also where it may not list clients otherwise: the gateway answers that itself.
 */
const markOfClient = (nonce: string): readonly string[] => ['CLIENT', 'LIST', 'TYPE', nonce]

/** Makes an engine answer with an error, and an open transaction of its connection fail as a whole. */
export const POISON = encodeTextCommand([MARK])

/** What a line of MONITOR begins with; no other simple string of an engine does. */
const MONITOR_LINE = /^\+\d+\.\d+ \[/

/** What may be done to whole frames on their way to the client. One that becomes empty is left out. */
export type FrameFilter = (frame: Buffer) => Buffer

/** Where the frames go and where marks are sent. */
export interface StreamEnds {
  readonly toClient: (bytes: Buffer) => void
  readonly toEngine: (bytes: Buffer) => void
}

/** How much a client has subscribed to. */
export interface Subscribed {
  readonly channels: number
  readonly patterns: number
  readonly shardChannels: number
}

interface Mark {
  readonly nonce: string
  /** Called in place of the mark's error. */
  readonly arrive: () => void
}

/** A greeting that was sent and is not yet answered. */
interface AwaitedGreeting {
  /** Version of the protocol from the answer on. */
  readonly protocol: 2 | 3
  readonly arrive: (greeting: Greeting | undefined) => void
}

/** The beginning of a confirmation that something was subscribed or left, in both versions of the protocol. */
const CONFIRMATION = /^[*>]3\r\n\$\d+\r\n(s|p)?(?:un)?subscribe\r\n/
const LONGEST_CONFIRMATION_HEAD_BYTES = 32
/** The end of it: what is still subscribed. */
const REMAINING = /:(\d+)\r\n$/
const LONGEST_REMAINING_BYTES = 24

const PUSH = 0x3e
const MINUS = 0x2d
/** What an engine sends on its own accord, or in confirmation, to a client that speaks RESP2. */
const MESSAGE = /^\*[34]\r\n\$\d+\r\n[ps]?(?:message|(?:un)?subscribe)\r\n/

/**
 * What replies of a kind begin with, and nothing that may come between does. For `facts` that is so as long as nothing is
 * subscribed in RESP2, where no such reply is asked for.
 */
const REPLY_TYPES = { number: ':-', facts: '*%-' } as const

type ReplyKind = keyof typeof REPLY_TYPES

/**
 * Everything that an engine sends on a connection where it speaks on its own accord. Messages and replies cannot be
 * told apart by counting there, so our own replies keep their place by a mark: a command that no engine knows, sent in
 * the client's place, whose error is replaced by our reply when it comes back.
 *
 * A mark also tells when everything sent before it has been answered.
 *
 * Frames are only gathered whole while a mark is awaited or a filter is set; otherwise bytes pass as they come.
 */
export class DedicatedStream {
  #filter: FrameFilter | undefined
  readonly #ends: StreamEnds
  readonly #framer = new ReplyFramer()
  #marks: Mark[] = []
  /** What the next reply goes through that is an error or of this kind. */
  #next: { readonly kind: ReplyKind; readonly filter: FrameFilter } | undefined
  /** What the engine says on its own accord goes through, in RESP3. */
  #pushFilter: FrameFilter | undefined
  #protocol: 2 | 3
  #greeting: AwaitedGreeting | undefined
  /** Whether the client wants no replies, or not the next one. */
  #replies: 'on' | 'off' | 'skip' = 'on'
  readonly #exec = new ExecWatch()
  /** Frames behind a reply that is being filled. */
  #late: Buffer[] | undefined
  /** Channels and patterns, as the last confirmation told; shard channels are counted by themselves. */
  #channels = 0
  /** Of those, patterns. */
  #patterns = 0
  #shardChannels = 0
  #held: Buffer[] = []
  /** The beginning of the present frame has been passed on already, so its rest is too. */
  #passing = false

  /** The client speaks `protocol`. */
  constructor(ends: StreamEnds, protocol: 2 | 3) {
    this.#ends = ends
    this.#protocol = protocol
  }

  /** Whether something was subscribed when `subscriptions` last resolved. */
  get isSubscribed(): boolean {
    return this.#channels + this.#shardChannels > 0
  }

  /** How much was subscribed of each kind when `subscriptions` last resolved. */
  get subscribed(): Subscribed {
    const patterns = Math.min(this.#patterns, this.#channels)
    return { channels: this.#channels - patterns, patterns, shardChannels: this.#shardChannels }
  }

  /** From the next frame on, every frame goes through `filter`. */
  filterWith(filter: FrameFilter): void {
    this.#filter = filter
  }

  /** From the next frame on, only what is no reply is passed on, or everything. */
  muteReplies(muted: boolean): void {
    this.#replies = muted ? 'off' : 'on'
  }

  /** The next reply is left out, unless all are. `false`: it is not, after all. */
  skipReply(skipped: boolean): void {
    if (this.#replies !== 'off') this.#replies = skipped ? 'skip' : 'on'
  }

  /** The command that is sent next is MULTI. The reply to its EXEC goes through `fill`, and what follows waits for it. */
  openTransaction(fill: FillReply): void {
    this.#mark(() => this.#exec.begin(fill))
  }

  /** The same for a transaction that is open already, while nothing is owed. */
  resumeTransaction(fill: FillReply): void {
    this.#exec.resume(fill)
  }

  /** Resolves when the reply to EXEC, which was the last command, has been filled and passed on. */
  executed(): Promise<void> {
    return new Promise((resolve) =>
      this.#mark(() => {
        this.#exec.end()
        resolve()
      }),
    )
  }

  /** Puts a reply of ours behind the replies of everything sent so far. Discards an open transaction. */
  insert(reply: Buffer): void {
    this.#mark(() => this.#pass(reply))
  }

  /** Calls back once everything sent so far has been answered. Discards an open transaction. */
  whenAnswered(answered: () => void): void {
    this.#mark(answered)
  }

  /**
   * Resolves to how much is subscribed once everything sent so far has been answered. Of what was sent since the last
   * call, only the last command may have subscribed or left something. Discards an open transaction.
   */
  subscriptions(): Promise<number> {
    return new Promise((resolve) => this.#mark(() => resolve(this.#channels + this.#shardChannels)))
  }

  /**
   * The command that is sent next greets the engine, which speaks `protocol` from its answer on. Resolves to that, which
   * does not go to the client; undefined when it is an error. Only while everything sent has been answered.
   */
  greeted(protocol: 2 | 3): Promise<Greeting | undefined> {
    return new Promise((arrive) => {
      this.#greeting = { protocol, arrive }
    })
  }

  /** The engine has begun to speak another version of the protocol. */
  speak(protocol: 2 | 3): void {
    this.#protocol = protocol
  }

  /**
   * The command that is sent next is a subcommand of CLIENT, answered with an error or a reply of this kind, which goes
   * through `filter`.
   */
  filterNext(kind: ReplyKind, filter: FrameFilter): void {
    this.#mark(() => {
      this.#next = { kind, filter }
    }, markOfClient)
  }

  /** From the next frame on, everything that is no reply goes through `filter` in RESP3. */
  filterPushes(filter: FrameFilter): void {
    this.#pushFilter = filter
  }

  #mark(arrive: () => void, commandOf = unknownMark): void {
    const nonce = randomBytes(12).toString('hex')
    this.#marks.push({ nonce, arrive })
    this.#ends.toEngine(Buffer.from(encodeTextCommand(commandOf(nonce))))
  }

  /** What holds replies against `limits` before they come here. A subscriber that speaks RESP2 gets nothing but messages. */
  behind(limits: ReplyLimits): ReplyGate {
    const getsReplies = (): boolean => this.#protocol === 3 || !this.isSubscribed
    const taker = {
      isEmpty: false,
      headCount: Number.POSITIVE_INFINITY,
      deliver: (chunk: Buffer, start: number, end: number) => this.push(chunk.subarray(start, end)),
    }
    return new ReplyGate(taker, {
      reword: limits.reword,
      get maxReplyBytes() {
        return getsReplies() ? limits.maxReplyBytes : Number.POSITIVE_INFINITY
      },
    })
  }

  /** Takes what the engine sent. @throws ReplyFormatError */
  push(chunk: Buffer): void {
    let from = 0
    while (from < chunk.length) {
      const end = this.#framer.scan(chunk, from, 1)
      this.#take(chunk.subarray(from, end), this.#framer.completed === 1)
      from = end
    }
  }

  #take(piece: Buffer, ends: boolean): void {
    if (this.#passing || (!this.#inspects && this.#held.length === 0)) {
      this.#passing = !ends
      this.#ends.toClient(piece)
      return
    }
    this.#held.push(piece)
    if (ends) this.#emit(Buffer.concat(this.#held.splice(0)))
  }

  #emit(frame: Buffer): void {
    if (this.#late) {
      this.#late.push(frame)
      return
    }
    const mark = this.#marks[0]
    if (mark && frame[0] === MINUS && frame.includes(mark.nonce)) {
      this.#marks.shift()
      mark.arrive()
      return
    }
    if (this.#greeting && this.#takeGreeting(this.#greeting, frame)) return
    this.#noteSubscriptions(frame)
    const fill = this.#exec.isWatching && this.#mayBeReply(frame) ? this.#exec.see(frame) : undefined
    if (fill) void this.#fill(frame, fill)
    else this.#pass(this.#filtered(frame))
  }

  /** @returns whether the frame is the answer to the greeting, and no message that came before it. */
  #takeGreeting({ protocol, arrive }: AwaitedGreeting, frame: Buffer): boolean {
    const greeting = readGreeting(frame)
    if (!greeting && frame[0] !== MINUS) return false
    this.#greeting = undefined
    if (greeting) this.#protocol = protocol
    arrive(greeting)
    return true
  }

  /** What comes meanwhile has to wait. Never rejects, as `fill` does not. */
  async #fill(reply: Buffer, fill: FillReply): Promise<void> {
    this.#late = []
    this.#pass(await fill(reply))
    const late = this.#late
    this.#late = undefined
    for (const frame of late) this.#emit(frame)
  }

  /** Whether frames have to be whole. */
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
    if (this.#replies === 'on' || isUnasked(frame, this.#protocol)) this.#ends.toClient(frame)
    else if (this.#replies === 'skip' && this.#mayBeReply(frame)) this.#replies = 'on'
    else if (this.#replies === 'skip') this.#ends.toClient(frame)
  }

  /** Inside of a transaction in RESP2 nothing is subscribed, so there everything is a reply that is no line of MONITOR. */
  #mayBeReply(frame: Buffer): boolean {
    if (this.#protocol === 3 && frame[0] === PUSH) return false
    return !MONITOR_LINE.test(frame.toString('latin1', 0, LONGEST_CONFIRMATION_HEAD_BYTES))
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

  #noteSubscriptions(frame: Buffer): void {
    const found = CONFIRMATION.exec(frame.toString('latin1', 0, LONGEST_CONFIRMATION_HEAD_BYTES))
    if (!found) return
    const remaining = Number(REMAINING.exec(frame.toString('latin1', frame.length - LONGEST_REMAINING_BYTES))?.[1] ?? 0)
    if (found[1] === 's') {
      this.#shardChannels = remaining
      return
    }
    if (found[1] === 'p') this.#patterns = Math.max(0, this.#patterns + remaining - this.#channels)
    this.#channels = remaining
  }
}

function isUnasked(frame: Buffer, protocol: 2 | 3): boolean {
  return protocol === 3 ? frame[0] === PUSH : MESSAGE.test(frame.toString('latin1', 0, LONGEST_CONFIRMATION_HEAD_BYTES))
}

/**
 * Tells an engine whom a connection speaks for from now on, and in which version of the protocol. What it watches, has
 * subscribed to or tracks stays. Only where everything sent has been answered.
 * @returns the engine's answer; undefined when it refuses, or is lost.
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
