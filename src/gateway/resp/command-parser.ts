import { HeaderReader, INCOMPLETE, INVALID, PlainCommand, printable } from './command-headers.js'
import type { ParseOutcome } from './command-limits.js'
import { type CommandLimits, LIMITS_BEFORE_LOGIN } from './command-limits.js'
import { encodeLatin1Command } from './encode.js'
import { behindEmptyLines, splitInline } from './inline.js'
import { ChunkQueue, copied, isLent } from './lent-memory.js'

/** What becomes of the bytes of the command in work. */
type Fate = 'gathered' | 'skipped' | 'streamed'

/** The name and the argument behind it, mostly a key, are never passed on in pieces. */
const WHOLE_ARGUMENTS = 2

/** How much of a chunk is taken at a time where nobody knows yet how much is needed. */
const HEADER_STEP_BYTES = 64
const INLINE_STEP_BYTES = 4096
/** A client may send a hundred thousand commands of nothing at once; so many are passed over at a stretch. */
const MOST_EMPTY_COMMANDS = 1_000
const LF = 10
const DOLLAR = 36
const STAR = 42
const BETWEEN_COMMANDS = -1
const AT_HEADER = 0

/**
 * Frames the commands of one client: finds where each begins, ends and has its name, without copying what lies whole
 * in one chunk. Of a command that is spread over chunks only its own bytes are gathered, in a buffer that doubles as it
 * grows, and the bytes already understood are not read again, so the work is linear in what arrives whatever the chunks
 * are.
 *
 * Bytes that were handed out are never overwritten.
 *
 * It is at least as strict as the engine: what it lets through, the engine frames in the same way.
 */
export class CommandParser {
  limits: CommandLimits = LIMITS_BEFORE_LOGIN
  /** The buffer of the last frame, which stands at [frameStart, frameEnd) in it, with its name at [nameStart, nameEnd). */
  frameBuffer: Buffer = EMPTY
  frameStart = 0
  frameEnd = 0
  nameStart = 0
  nameEnd = 0
  argumentCount = 0
  /** Length of the last `oversize` or `large` command. */
  actualBytes = 0
  /** Which argument the last `large` command was announced for; its name is number 0. */
  largeIndex = 0
  /** Why the last outcome was `broken`. */
  problem = ''

  #buffer: Buffer = EMPTY
  #end = 0
  /** Up to here `#buffer` may be written to. */
  #room = 0
  /** What came behind `#buffer`. */
  readonly #chunks = new ChunkQueue()
  /** First byte of the command in work; what lies before it is forgotten. */
  #begin = 0
  /** Next byte to understand. */
  #at = 0
  #argumentsLeft = BETWEEN_COMMANDS
  /** Bytes of the argument in work that must still come, with its line end; `AT_HEADER` before its length is known. */
  #payloadLeft = AT_HEADER
  #commandBytes = 0
  #fate: Fate = 'gathered'
  #nameFrom = 0
  #nameTo = 0
  #repeat = false
  /** What `next` answered last. */
  #outcome: ParseOutcome = 'more'

  /** Bytes that wait for the rest of their command or for `next` to be called. */
  get heldBytes(): number {
    return this.#end - this.#begin + this.#chunks.bytes
  }

  /** Takes the next `length` bytes; they must not change before `release` is called, nor afterwards unless lent. */
  push(memory: Buffer, length = memory.length): void {
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

  /** Whether `next` is going to give the same answer once more. */
  get repeats(): boolean {
    return this.#repeat
  }

  /** Makes `next` give the same answer once more: `frame` or `large`. */
  repeat(): void {
    this.#repeat = true
  }

  /** From now on the command that was answered as `large` comes in pieces; the frame of that answer is its first. */
  stream(): void {
    this.#fate = 'streamed'
    this.#begin = this.#at
  }

  /**
   * Lets go of the chunk that was pushed last: what is still needed of it is copied, if it was lent. Frames handed out are
   * void, unless it is one that is going to be answered once more.
   */
  release(): void {
    if (this.#begin < this.#end || this.#chunks.bytes > 0 || this.#repeat) {
      this.#own()
      return
    }
    this.frameBuffer = EMPTY
    this.#replace(EMPTY, 0)
  }

  #own(): void {
    this.#chunks.own()
    if (!isLent(this.#buffer)) return
    if (this.#repeat && this.frameBuffer === this.#buffer) this.#ownFrame()
    else if (this.#begin === this.#end) this.#replace(EMPTY, 0)
    else this.#grow(0)
  }

  /** The frame that is going to be answered once more, and what lies behind it. */
  #ownFrame(): void {
    const shift = this.frameStart
    this.#buffer = copied(this.#buffer.subarray(shift, this.#end))
    this.#end -= shift
    this.#room = this.#end
    this.#moveBack(shift)
    this.frameBuffer = this.#buffer
    this.frameStart = 0
    this.frameEnd -= shift
    this.nameStart -= shift
    this.nameEnd -= shift
  }

  #replace(memory: Buffer, length: number): void {
    const shift = this.#begin
    this.#buffer = memory
    this.#room = length
    this.#end = length
    this.#moveBack(shift)
  }

  /** Goes on to the next chunk, or takes as much of it as the command in work is known to need. */
  #takeChunk(): void {
    const chunk = this.#chunks.first
    const taken = this.#begin === this.#end ? chunk.length : Math.min(chunk.length, this.#neededBytes())
    if (this.#begin === this.#end) this.#replace(chunk, chunk.length)
    else this.#gather(chunk, taken)
    this.#chunks.take(taken)
  }

  /** How many more bytes the command in work needs at least; of a header or an inline command, a guess. */
  #neededBytes(): number {
    if (this.#argumentsLeft > 0 && this.#payloadLeft !== AT_HEADER) return this.#at + this.#payloadLeft - this.#end
    return this.#argumentsLeft > 0 || this.#buffer[this.#at] === STAR ? HEADER_STEP_BYTES : INLINE_STEP_BYTES
  }

  #gather(chunk: Buffer, bytes: number): void {
    if (this.#end + bytes > this.#room) this.#grow(bytes)
    chunk.copy(this.#buffer, this.#end, 0, bytes)
    this.#end += bytes
  }

  /** Doubles, but not beyond what the command is known to need where its last argument is in work. */
  #grow(bytes: number): void {
    const held = this.#end - this.#begin
    const doubled = 2 * (held + bytes) + HEADER_STEP_BYTES
    const known = held + Math.max(bytes, this.#neededBytes()) + HEADER_STEP_BYTES
    const inLastArgument = this.#argumentsLeft === 1 && this.#payloadLeft !== AT_HEADER
    const grown = Buffer.allocUnsafeSlow(inLastArgument ? Math.min(known, doubled) : doubled)
    this.#buffer.copy(grown, 0, this.#begin, this.#end)
    this.#buffer = grown
    this.#room = grown.length
    this.#end -= this.#begin
    this.#moveBack(this.#begin)
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
        return this.#broken(`${this.#badWord(count)} multibulk length`)
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
      return this.#broken(`${this.#badWord(length)} bulk length`)
    this.#payloadLeft = length + 2
    this.#commandBytes += this.#at - before + length + 2
    if (this.#commandBytes > this.limits.maxRequestBytes) this.#fate = 'skipped'
    return this.#mayStream(length) ? this.#announce() : 'read'
  }

  /** What a streamed command has had so far goes on its way; the beginning of a header waits for its rest. */
  #awaitHeader(): 'more' | 'part' {
    return this.#fate === 'streamed' ? this.#pass() : 'more'
  }

  #mayStream(length: number): boolean {
    const isWhole = this.argumentCount - this.#argumentsLeft < WHOLE_ARGUMENTS
    return length >= this.limits.largeArgumentBytes && !isWhole && this.#fate === 'gathered'
  }

  #announce(): 'large' {
    this.actualBytes = this.#commandBytes
    this.largeIndex = this.argumentCount - this.#argumentsLeft
    this.#handOut()
    return 'large'
  }

  /** Of a command that is skipped or streamed, not a byte is kept. */
  #awaitPayload(): 'more' | 'part' {
    if (this.#fate === 'gathered') return 'more'
    this.#payloadLeft -= this.#end - this.#at
    this.#at = this.#end
    return this.#pass()
  }

  /** Lets go of what has been understood of a command that is skipped or streamed. */
  #pass(): 'more' | 'part' {
    const isPart = this.#fate === 'streamed' && this.#begin < this.#at
    if (isPart) this.#handOut()
    this.#begin = this.#at
    return isPart ? 'part' : 'more'
  }

  /** What lies between the beginning of the command and `#at` is the present frame. */
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

  /** Reads the header at `#at` and moves behind it, or leaves `#at` where it is. */
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

  #badWord(value: number): string {
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
/** What they know is used at once, so all parsers have the same, which stay in the processor's cache. */
const plain = new PlainCommand()
const header = new HeaderReader()
