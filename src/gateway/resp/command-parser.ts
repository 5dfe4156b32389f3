import { HeaderReader, INCOMPLETE, INVALID, PlainCommand, printable } from './command-headers.js'
import { type CommandLimits, LIMITS_BEFORE_LOGIN, type ParseOutcome } from './command-limits.js'
import { encodeLatin1Command } from './encode.js'
import { GatherMemory } from './gather-memory.js'
import { behindEmptyLines, splitInline } from './inline.js'
import { ChunkQueue, isLent, keep, type LentBytes } from './lent-memory.js'

/** How the bytes of the current command are treated. */
type Fate = 'gathered' | 'skipped' | 'streamed'

/** The name and the first argument, usually a key, are never streamed. */
const WHOLE_ARGUMENTS = 2
/** A client that announces a long argument and sends a short part of it does not get the memory for all. */
const MOST_FORESEEN = 8
/** Bytes that are taken from a chunk at a time while the length of the command is not known. */
const HEADER_STEP_BYTES = 64
const INLINE_STEP_BYTES = 4096
/** Empty commands that are skipped in one call: a client may send a hundred thousand at once. */
const MOST_EMPTY_COMMANDS = 1_000
const LF = 10
const DOLLAR = 36
const STAR = 42
const BETWEEN_COMMANDS = -1
const AT_HEADER = 0

/**
 * Frames the commands of one client: finds where each begins and ends and where its name is, without copying a command
 * that lies whole in one chunk. A command that is spread over chunks is gathered in a buffer that doubles as it grows.
 * Bytes that were parsed are not read again, so the work is linear in what arrives, whatever the chunks are.
 *
 * Bytes of a frame that was handed out are not overwritten before `release`, nor afterwards unless they are lent.
 *
 * It is at least as strict as the engine: every command that it accepts, the engine frames in the same way.
 */
export class CommandParser {
  limits: CommandLimits = LIMITS_BEFORE_LOGIN
  /** Contains the last frame at [frameStart, frameEnd), with its name at [nameStart, nameEnd). */
  frameBuffer: LentBytes = EMPTY
  frameStart = 0
  frameEnd = 0
  nameStart = 0
  nameEnd = 0
  argumentCount = 0
  /** Length of the last `oversize` or `large` command. */
  actualBytes = 0
  /** Index of the large argument of the last `large` command; its name has index 0. */
  largeIndex = 0
  /** Why the last outcome was `broken`. */
  problem = ''

  #buffer: LentBytes = EMPTY
  #end = 0
  /** End of the part of `#buffer` that may be written to. */
  #capacity = 0
  readonly #memory = new GatherMemory()
  /** The chunks behind `#buffer`. */
  readonly #chunks = new ChunkQueue()
  /** First byte of the current command; nothing before it is needed. */
  #begin = 0
  /** Next byte to parse. */
  #at = 0
  #argumentsLeft = BETWEEN_COMMANDS
  /** Bytes of the current argument that are missing, with its line end; `AT_HEADER` before its length is known. */
  #payloadLeft = AT_HEADER
  #commandBytes = 0
  #fate: Fate = 'gathered'
  #nameFrom = 0
  #nameTo = 0
  #repeat = false
  /** The last result of `next`. */
  #outcome: ParseOutcome = 'more'

  /** Bytes that wait for the rest of their command, or for a call of `next`. */
  get heldBytes(): number {
    return this.#end - this.#begin + this.#chunks.bytes
  }

  /** Takes the next `length` bytes. They must not change before `release` is called, nor afterwards unless they are lent. */
  push(memory: LentBytes, length = memory.length): void {
    if (this.#begin === this.#end && this.#chunks.bytes === 0) this.#replace(memory, length)
    else this.#chunks.push(memory.subarray(0, length))
  }

  /** Finds the next command in what was pushed so far. */
  next(): ParseOutcome {
    if (this.#repeat) {
      this.#repeat = false
      return this.#outcome
    }
    for (;;) {
      this.#outcome = this.#parse()
      if (this.#outcome !== 'more' || this.#chunks.bytes === 0) return this.#outcome
      this.#takeChunk()
    }
  }

  #parse(): ParseOutcome {
    if (this.#argumentsLeft === BETWEEN_COMMANDS) {
      if (plain.isAt(this.#buffer, this.#at, this.#end, this.limits)) return this.#takePlain()
      const begun = this.#beginCommand()
      if (begun !== 'begun') return begun
    }
    while (this.#argumentsLeft > 0) {
      const outcome = this.#readArgument()
      if (outcome !== 'read') return outcome
    }
    return this.#endCommand()
  }

  /** Whether `next` will return the same outcome once more. */
  get repeats(): boolean {
    return this.#repeat
  }

  /** Makes `next` return the same outcome once more: `frame` or `large`. */
  repeat(): void {
    this.#repeat = true
  }

  /** Streams the `large` command: the frame of that outcome was its first piece. */
  stream(): void {
    this.#fate = 'streamed'
    this.#begin = this.#at
  }

  /**
   * Releases the chunk that was pushed last: keeps what is still needed of it. Frames that were handed out become invalid,
   * unless `repeat` was called.
   */
  release(): void {
    if (this.#begin < this.#end || this.#chunks.bytes > 0 || this.#repeat) this.#keepRest()
    else {
      this.frameBuffer = EMPTY
      this.#replace(EMPTY, 0)
    }
    if (!this.#repeat) this.#memory.giveBack()
  }

  #keepRest(): void {
    this.#chunks.keepLast()
    if (this.#memory.isCurrent(this.#buffer) || !isLent(this.#buffer)) return
    if (this.#repeat && this.frameBuffer === this.#buffer) this.#keepFrame()
    else if (this.#begin === this.#end) this.#replace(EMPTY, 0)
    else this.#grow(0)
  }

  /** Keeps the frame that is repeated, and the bytes behind it. */
  #keepFrame(): void {
    const shift = this.frameStart
    this.#buffer = keep(this.#buffer.subarray(shift, this.#end))
    this.#end -= shift
    this.#capacity = this.#end
    this.#moveBack(shift)
    this.frameBuffer = this.#buffer
    this.frameStart = 0
    this.frameEnd -= shift
    this.nameStart -= shift
    this.nameEnd -= shift
  }

  #replace(memory: LentBytes, length: number): void {
    const shift = this.#begin
    this.#memory.leave()
    this.#buffer = memory
    this.#capacity = length
    this.#end = length
    this.#moveBack(shift)
  }

  /** Continues with the next chunk, or takes as much of it as the current command is known to need. */
  #takeChunk(): void {
    const chunk = this.#chunks.first
    const taken = this.#begin === this.#end ? chunk.length : Math.min(chunk.length, this.#neededBytes())
    if (this.#begin === this.#end) this.#replace(chunk, chunk.length)
    else this.#gather(chunk, taken)
    this.#chunks.take(taken)
  }

  /** How many more bytes the current command needs at least; a guess for a header or an inline command. */
  #neededBytes(): number {
    if (this.#argumentsLeft > 0 && this.#payloadLeft !== AT_HEADER) return this.#at + this.#payloadLeft - this.#end
    return this.#argumentsLeft > 0 || this.#buffer[this.#at] === STAR ? HEADER_STEP_BYTES : INLINE_STEP_BYTES
  }

  #gather(chunk: LentBytes, bytes: number): void {
    if (this.#end + bytes > this.#capacity) this.#grow(bytes)
    chunk.copy(this.#buffer, this.#end, 0, bytes)
    this.#end += bytes
  }

  #grow(bytes: number): void {
    const grown = this.#memory.take(this.#bytesToGather(bytes))
    this.#buffer.copy(grown, 0, this.#begin, this.#end)
    this.#buffer = grown
    this.#capacity = grown.length
    this.#end -= this.#begin
    this.#moveBack(this.#begin)
  }

  /**
   * Space for what is held and `bytes` more: twice as much, so that the work stays linear. In the last argument of a
   * command as much as the command needs, up to `MOST_FORESEEN` times what has arrived.
   */
  #bytesToGather(bytes: number): number {
    const held = this.#end - this.#begin
    if (this.#argumentsLeft === BETWEEN_COMMANDS && bytes === 0) return held
    const inLastArgument = this.#argumentsLeft === 1 && this.#payloadLeft !== AT_HEADER
    if (!inLastArgument) return 2 * (held + bytes) + HEADER_STEP_BYTES
    const known = held + Math.max(bytes, this.#neededBytes()) + HEADER_STEP_BYTES
    return Math.min(known, MOST_FORESEEN * (held + bytes) + HEADER_STEP_BYTES)
  }

  #moveBack(shift: number): void {
    this.#begin -= shift
    this.#at -= shift
    this.#nameFrom -= shift
    this.#nameTo -= shift
  }

  #takePlain(): 'frame' {
    const { end, argumentCount, nameStart, nameEnd } = plain
    this.argumentCount = argumentCount
    this.frameBuffer = this.#buffer
    this.frameStart = this.#at
    this.frameEnd = end
    this.nameStart = nameStart
    this.nameEnd = nameEnd
    this.#begin = end
    this.#at = end
    return 'frame'
  }

  #beginCommand(): 'begun' | ParseOutcome {
    this.#at = behindEmptyLines(this.#buffer, this.#at, this.#end)
    this.#begin = this.#at
    for (let empty = 0; this.#at < this.#end; empty++) {
      if (empty === MOST_EMPTY_COMMANDS) return 'empty'
      if (this.#buffer[this.#at] !== STAR) {
        const outcome = this.#readInline()
        if (outcome !== 'blank') return outcome
        continue
      }
      const count = this.#readHeader()
      if (count === INCOMPLETE) return 'more'
      if (count === INVALID || count > this.limits.maxArguments)
        return this.#broken(`${this.#wordFor(count)} multibulk length`)
      if (count > 0) return this.#begun(count)
      this.#begin = this.#at
    }
    return 'more'
  }

  #begun(count: number): 'begun' {
    this.#argumentsLeft = count
    this.argumentCount = count
    this.#payloadLeft = AT_HEADER
    this.#commandBytes = this.#at - this.#begin
    this.#fate = 'gathered'
    return 'begun'
  }

  #readArgument(): 'read' | ParseOutcome {
    if (this.#payloadLeft === AT_HEADER) {
      const outcome = this.#readArgumentHeader()
      if (outcome !== 'read') return outcome
    }
    const end = this.#at + this.#payloadLeft
    if (end > this.#end) return this.#awaitPayload()
    if (this.#argumentsLeft === this.argumentCount) this.#rememberName()
    this.#at = end
    if (this.#fate === 'skipped') this.#begin = end
    this.#payloadLeft = AT_HEADER
    this.#argumentsLeft--
    return 'read'
  }

  #readArgumentHeader(): 'read' | ParseOutcome {
    if (this.#at === this.#end) return this.#awaitHeader()
    const first = this.#buffer[this.#at] ?? 0
    if (first !== DOLLAR) return this.#broken(`expected '$', got '${printable(first)}'`)
    const before = this.#at
    const length = this.#readHeader()
    if (length === INCOMPLETE) return this.#awaitHeader()
    if (length === INVALID || length > this.limits.maxArgumentBytes)
      return this.#broken(`${this.#wordFor(length)} bulk length`)
    this.#payloadLeft = length + 2
    this.#commandBytes += this.#at - before + length + 2
    if (this.#commandBytes > this.limits.maxRequestBytes) this.#fate = 'skipped'
    return this.#isStreamable(length) ? this.#announce() : 'read'
  }

  /** Passes on what has arrived of a streamed command; the beginning of a header waits for its rest. */
  #awaitHeader(): 'more' | 'part' {
    return this.#fate === 'streamed' ? this.#pass() : 'more'
  }

  #isStreamable(length: number): boolean {
    const isWhole = this.argumentCount - this.#argumentsLeft < WHOLE_ARGUMENTS
    return length >= this.limits.largeArgumentBytes && !isWhole && this.#fate === 'gathered'
  }

  #announce(): 'large' {
    this.actualBytes = this.#commandBytes
    this.largeIndex = this.argumentCount - this.#argumentsLeft
    this.#handOut()
    return 'large'
  }

  /** Of a command that is skipped or streamed, no byte is held. */
  #awaitPayload(): 'more' | 'part' {
    if (this.#fate === 'gathered') return 'more'
    this.#payloadLeft -= this.#end - this.#at
    this.#at = this.#end
    return this.#pass()
  }

  /** Releases what has been parsed of a command that is skipped or streamed. */
  #pass(): 'more' | 'part' {
    const isPart = this.#fate === 'streamed' && this.#begin < this.#at
    if (isPart) this.#handOut()
    this.#begin = this.#at
    return isPart ? 'part' : 'more'
  }

  /** Makes the bytes from the beginning of the command to `#at` the current frame. */
  #handOut(): void {
    this.frameBuffer = this.#buffer
    this.frameStart = this.#begin
    this.frameEnd = this.#at
    this.nameStart = this.#nameFrom
    this.nameEnd = this.#nameTo
  }

  #rememberName(): void {
    this.#nameFrom = this.#at
    this.#nameTo = this.#at + this.#payloadLeft - 2
  }

  #endCommand(): ParseOutcome {
    this.#argumentsLeft = BETWEEN_COMMANDS
    if (this.#fate === 'skipped') {
      this.actualBytes = this.#commandBytes
      this.#begin = this.#at
      return 'oversize'
    }
    this.#handOut()
    this.#begin = this.#at
    return this.#fate === 'streamed' ? 'last' : 'frame'
  }

  /** Reads the header at `#at` and moves behind it if it is complete. */
  #readHeader(): number {
    const value = header.read(this.#buffer, this.#at, this.#end)
    if (value >= 0) this.#at = header.end
    return value
  }

  #readInline(): 'blank' | ParseOutcome {
    const lineEnd = this.#buffer.subarray(0, this.#end).indexOf(LF, this.#at)
    if (lineEnd < 0 || lineEnd - this.#at > this.limits.maxInlineBytes) {
      return this.#end - this.#begin > this.limits.maxInlineBytes ? this.#broken('too big inline request') : 'more'
    }
    const words = splitInline(this.#buffer.toString('latin1', this.#at, lineEnd).replace(/\r$/, ''))
    this.#at = lineEnd + 1
    this.#begin = this.#at
    if (!words) return this.#broken('unbalanced quotes in request')
    return words.length === 0 ? 'blank' : this.#inlineFrame(words)
  }

  #inlineFrame(words: readonly string[]): 'frame' {
    const frame = encodeLatin1Command(words)
    const nameBytes = words[0]?.length ?? 0
    this.frameBuffer = frame
    this.frameStart = 0
    this.frameEnd = frame.length
    this.argumentCount = words.length
    this.nameStart = frame.indexOf('\r\n', frame.indexOf('$')) + 2
    this.nameEnd = this.nameStart + nameBytes
    return 'frame'
  }

  #wordFor(value: number): string {
    return value === INVALID ? 'invalid' : this.limits.excessWord
  }

  #broken(problem: string): 'broken' {
    this.problem = `Protocol error: ${problem}`
    this.#chunks.clear()
    this.#begin = this.#end
    this.#at = this.#end
    this.#argumentsLeft = BETWEEN_COMMANDS
    return 'broken'
  }
}

const EMPTY = Buffer.alloc(0)
/** Their results are used at once, so all parsers share them: they stay in the processor's cache. */
const plain = new PlainCommand()
const header = new HeaderReader()
