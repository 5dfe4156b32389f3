import { HeaderReader, INCOMPLETE, INVALID, PlainCommand, printable } from './command-headers.js'
import { type CommandLimits, LIMITS_BEFORE_LOGIN, type ParseOutcome } from './command-limits.js'
import { encodeLatin1Command } from './encode.js'
import { behindEmptyLines, splitInline } from './inline.js'
import { InputBuffer } from './input-buffer.js'
import type { LentBytes } from './lent-memory.js'

/** How the bytes of the current command are treated. */
type Fate = 'gathered' | 'skipped' | 'streamed'

/** The name and the first argument, usually a key, are never streamed. */
const WHOLE_ARGUMENTS = 2
/** Bytes that are taken from a chunk at a time while the length of the command is not known. */
const HEADER_STEP_BYTES = 64
const INLINE_STEP_BYTES = 4096
/** Empty commands that are skipped in one call: a client may send a hundred thousand at once. */
const MAX_EMPTY_COMMANDS = 1_000
const LF = 10
const DOLLAR = 36
const STAR = 42
const BETWEEN_COMMANDS = -1
const AT_HEADER = 0

/**
 * Frames the commands of one client: finds where each begins and ends and where its name is, without copying a command
 * that lies whole in one chunk.
 *
 * ```
 *   between commands ──header──▶ at a header ──its length──▶ in an argument ──▶ … ──the last one──▶ between commands
 * ```
 *
 * Bytes that were parsed are not read again, so the work is linear in the input, for any division into chunks. The parser is
 * at least as strict as the engine: every command that it accepts, the engine frames in the same way.
 *
 * Bytes of a frame that was handed out are not overwritten before `release`, nor afterwards unless they are lent.
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

  readonly #input = new InputBuffer()
  /** Next byte to parse, counted from the beginning of the current command; 0 between commands. */
  #at = 0
  #argumentsLeft = BETWEEN_COMMANDS
  /** Bytes of the current argument that are missing, with its line end; `AT_HEADER` before its length is known. */
  #payloadLeft = AT_HEADER
  #commandBytes = 0
  #fate: Fate = 'gathered'
  /** Position of the name, counted like `#at`. */
  #nameFrom = 0
  #nameTo = 0
  #repeat = false
  /** The last result of `next`. */
  #outcome: ParseOutcome = 'more'

  /** Bytes that wait for the rest of their command, or for a call of `next`. */
  get heldBytes(): number {
    return this.#input.heldBytes
  }

  /** Takes the next `length` bytes. They must not change before `release` is called; if they are not lent, never. */
  push(memory: LentBytes, length = memory.length): void {
    this.#input.push(memory, length)
  }

  /** Finds the next command in what was pushed so far. */
  next(): ParseOutcome {
    if (this.#repeat) {
      this.#repeat = false
      return this.#outcome
    }
    for (;;) {
      this.#outcome = this.#parse()
      if (this.#outcome !== 'more' || !this.#input.hasMore) return this.#outcome
      this.#input.takeChunk(this.#neededBytes(), this.#isInLastArgument)
    }
  }

  #parse(): ParseOutcome {
    if (this.#argumentsLeft === BETWEEN_COMMANDS) {
      const { bytes, begin, end } = this.#input
      if (plain.isAt(bytes, begin, end, this.limits)) return this.#takePlain()
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
    this.#consume()
  }

  /**
   * Releases the chunk that was pushed last, after keeping the bytes of it that are still needed. Frames that were handed
   * out become invalid, unless `repeat` was called.
   */
  release(): void {
    const input = this.#input
    if (this.#repeat && this.frameBuffer === input.bytes) this.#shiftFrame(input.keepFrom(this.frameStart))
    else if (this.#repeat || input.heldBytes > 0) this.#keepRest()
    else {
      this.frameBuffer = EMPTY
      input.clear()
    }
    if (!this.#repeat) input.giveBack()
  }

  #shiftFrame(shift: number): void {
    this.frameBuffer = this.#input.bytes
    this.frameStart -= shift
    this.frameEnd -= shift
    this.nameStart -= shift
    this.nameEnd -= shift
  }

  /** Keeps the bytes of the current command. Before its header has arrived, it reserves no memory for more bytes. */
  #keepRest(): void {
    if (this.#argumentsLeft === BETWEEN_COMMANDS) this.#input.keep(0, true)
    else this.#input.keep(this.#neededBytes(), this.#isInLastArgument)
  }

  /** Drops everything that was parsed so far. */
  #consume(): void {
    this.#input.begin += this.#at
    this.#at = 0
  }

  /** Least number of bytes that the current command still needs; a guess for a header or an inline command. */
  #neededBytes(): number {
    const { bytes, begin, end } = this.#input
    if (this.#argumentsLeft > 0 && this.#payloadLeft !== AT_HEADER) return begin + this.#at + this.#payloadLeft - end
    return this.#argumentsLeft > 0 || bytes[begin] === STAR ? HEADER_STEP_BYTES : INLINE_STEP_BYTES
  }

  get #isInLastArgument(): boolean {
    return this.#argumentsLeft === 1 && this.#payloadLeft !== AT_HEADER
  }

  #takePlain(): 'frame' {
    const { end, argumentCount, nameStart, nameEnd } = plain
    this.argumentCount = argumentCount
    const input = this.#input
    this.frameBuffer = input.bytes
    this.frameStart = input.begin
    this.frameEnd = end
    this.nameStart = nameStart
    this.nameEnd = nameEnd
    input.begin = end
    return 'frame'
  }

  #beginCommand(): 'begun' | ParseOutcome {
    const input = this.#input
    input.begin = behindEmptyLines(input.bytes, input.begin, input.end)
    for (let empty = 0; input.begin < input.end; empty++) {
      if (empty === MAX_EMPTY_COMMANDS) return 'empty'
      if (input.bytes[input.begin] !== STAR) {
        const outcome = this.#readInline()
        if (outcome !== 'blank') return outcome
        continue
      }
      const count = header.read(input.bytes, input.begin, input.end)
      if (count === INCOMPLETE) return 'more'
      if (count === INVALID || count > this.limits.maxArguments)
        return this.#broken(`${this.#wordFor(count)} multibulk length`)
      if (count > 0) return this.#begun(count)
      input.begin = header.end
    }
    return 'more'
  }

  #begun(count: number): 'begun' {
    this.#argumentsLeft = count
    this.argumentCount = count
    this.#payloadLeft = AT_HEADER
    this.#at = header.end - this.#input.begin
    this.#commandBytes = this.#at
    this.#fate = 'gathered'
    return 'begun'
  }

  #readArgument(): 'read' | ParseOutcome {
    if (this.#payloadLeft === AT_HEADER) {
      const outcome = this.#readArgumentHeader()
      if (outcome !== 'read') return outcome
    }
    const end = this.#at + this.#payloadLeft
    if (end > this.#input.end - this.#input.begin) return this.#awaitPayload()
    if (this.#argumentsLeft === this.argumentCount) this.#rememberName()
    this.#at = end
    if (this.#fate === 'skipped') this.#consume()
    this.#payloadLeft = AT_HEADER
    this.#argumentsLeft--
    return 'read'
  }

  #readArgumentHeader(): 'read' | ParseOutcome {
    const { bytes, begin, end } = this.#input
    const start = begin + this.#at
    if (start === end) return this.#awaitHeader()
    const first = bytes[start] ?? 0
    if (first !== DOLLAR) return this.#broken(`expected '$', got '${printable(first)}'`)
    const length = header.read(bytes, start, end)
    if (length === INCOMPLETE) return this.#awaitHeader()
    if (length === INVALID || length > this.limits.maxArgumentBytes)
      return this.#broken(`${this.#wordFor(length)} bulk length`)
    this.#at = header.end - begin
    this.#payloadLeft = length + 2
    this.#commandBytes += header.end - start + length + 2
    if (this.#commandBytes > this.limits.maxRequestBytes) this.#fate = 'skipped'
    return this.#isStreamable(length) ? this.#announce() : 'read'
  }

  /** Passes on the bytes of a streamed command that have arrived. The beginning of a header waits for its rest. */
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

  /** Waits for the rest of an argument. Holds no bytes of a command that is skipped or streamed. */
  #awaitPayload(): 'more' | 'part' {
    if (this.#fate === 'gathered') return 'more'
    const arrived = this.#input.end - this.#input.begin
    this.#payloadLeft -= arrived - this.#at
    this.#at = arrived
    return this.#pass()
  }

  /** Releases the parsed bytes of a command that is skipped or streamed. */
  #pass(): 'more' | 'part' {
    const isPart = this.#fate === 'streamed' && this.#at > 0
    if (isPart) this.#handOut()
    this.#consume()
    return isPart ? 'part' : 'more'
  }

  /** Makes the parsed bytes of the command the current frame. */
  #handOut(): void {
    const { bytes, begin } = this.#input
    this.frameBuffer = bytes
    this.frameStart = begin
    this.frameEnd = begin + this.#at
    this.nameStart = begin + this.#nameFrom
    this.nameEnd = begin + this.#nameTo
  }

  #rememberName(): void {
    this.#nameFrom = this.#at
    this.#nameTo = this.#at + this.#payloadLeft - 2
  }

  #endCommand(): ParseOutcome {
    this.#argumentsLeft = BETWEEN_COMMANDS
    if (this.#fate === 'skipped') {
      this.actualBytes = this.#commandBytes
      this.#consume()
      return 'oversize'
    }
    this.#handOut()
    this.#consume()
    return this.#fate === 'streamed' ? 'last' : 'frame'
  }

  #readInline(): 'blank' | ParseOutcome {
    const input = this.#input
    const { bytes, begin, end } = input
    const lineEnd = bytes.subarray(0, end).indexOf(LF, begin)
    if (lineEnd < 0 || lineEnd - begin > this.limits.maxInlineBytes) {
      return end - begin > this.limits.maxInlineBytes ? this.#broken('too big inline request') : 'more'
    }
    const words = splitInline(bytes.toString('latin1', begin, lineEnd).replace(/\r$/, ''))
    input.begin = lineEnd + 1
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
    this.#input.clear()
    this.#at = 0
    this.#argumentsLeft = BETWEEN_COMMANDS
    return 'broken'
  }
}

const EMPTY = Buffer.alloc(0)
/** Shared by all parsers, so that they stay in the processor's cache. A parser uses their results at once. */
const plain = new PlainCommand()
const header = new HeaderReader()
