import { encodeCommand } from './encode.js'
import { splitInline } from './inline.js'

/** Bounds of what a client may send; the engine has the first two, with these numbers, before and after login. */
export interface CommandLimits {
  /** Most arguments of one command. */
  readonly maxArguments: number
  /** Longest single argument, bytes. */
  readonly maxArgumentBytes: number
  /** Longest whole command, bytes. A longer one is skipped and told as `oversize`; the connection goes on. */
  readonly maxRequestBytes: number
  /** How a count or length above the first two is called in the error. */
  readonly excessWord: 'unauthenticated' | 'invalid'
}

/** What a client may send before it has logged in: enough for HELLO with AUTH and SETNAME. */
export const LIMITS_BEFORE_LOGIN: CommandLimits = {
  maxArguments: 10,
  maxArgumentBytes: 16_384,
  maxRequestBytes: 1_048_576,
  excessWord: 'unauthenticated',
}

/** What a client may send after login. */
export function limitsAfterLogin(maxRequestBytes: number): CommandLimits {
  return {
    maxArguments: 1_048_576,
    maxArgumentBytes: 512 * 1024 * 1024,
    maxRequestBytes,
    excessWord: 'invalid',
  }
}

/**
 * - `frame`: one whole command; see `frameBuffer` and its neighbours.
 * - `more`: the next chunk is needed.
 * - `oversize`: a command longer than the limit went by; `actualBytes` is its length.
 * - `broken`: the bytes are no command; `problem` is the engine's wording. Nothing after them can be understood.
 */
export type ParseOutcome = 'frame' | 'more' | 'oversize' | 'broken'

const LONGEST_INLINE_BYTES = 65_536
const LONGEST_HEADER_BYTES = 32
/** How much of a chunk is taken at a time where nobody knows yet how much is needed. */
const HEADER_STEP_BYTES = 64
const INLINE_STEP_BYTES = 4096
const LF = 10
const CR = 13
const DOLLAR = 36
const STAR = 42
const ZERO = 48
const INCOMPLETE = -1
const INVALID = -2
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
  /** Length of the last `oversize` command. */
  actualBytes = 0
  /** Why the last outcome was `broken`. */
  problem = ''

  #buffer: Buffer = EMPTY
  #end = 0
  /** Chunks behind `#buffer`, of which those before `#firstChunk` are used up. */
  #chunks: Buffer[] = []
  #firstChunk = 0
  #chunkBytes = 0
  /** First byte of the command in work; what lies before it is forgotten. */
  #begin = 0
  /** Next byte to understand. */
  #at = 0
  #argumentsLeft = BETWEEN_COMMANDS
  /** Bytes of the argument in work that must still come, with its line end; `AT_HEADER` before its length is known. */
  #payloadLeft = AT_HEADER
  #commandBytes = 0
  #skipping = false
  #nameFrom = 0
  #nameTo = 0
  #repeat = false

  /** Bytes that wait for the rest of their command or for `next` to be called. */
  get heldBytes(): number {
    return this.#end - this.#begin + this.#chunkBytes
  }

  /** Takes the next bytes of the client; they must not change afterwards. */
  push(chunk: Buffer): void {
    if (this.#begin === this.#end && this.#chunkBytes === 0) {
      this.#replace(chunk)
      return
    }
    this.#chunks.push(chunk)
    this.#chunkBytes += chunk.length
  }

  /** Finds the next command in what was pushed so far. */
  next(): ParseOutcome {
    if (this.#repeat) {
      this.#repeat = false
      return 'frame'
    }
    for (;;) {
      const outcome = this.#parse()
      if (outcome !== 'more' || this.#chunkBytes === 0) return outcome
      this.#takeChunk()
    }
  }

  #parse(): ParseOutcome {
    if (this.#argumentsLeft === BETWEEN_COMMANDS) {
      const begun = this.#beginCommand()
      if (begun !== 'begun') return begun
    }
    while (this.#argumentsLeft > 0) {
      const outcome = this.#readArgument()
      if (outcome !== 'read') return outcome
    }
    return this.#endCommand()
  }

  /** Whether `next` is going to answer the same frame once more. */
  get repeats(): boolean {
    return this.#repeat
  }

  /** Makes `next` answer the same frame once more. */
  repeat(): void {
    this.#repeat = true
  }

  /** Lets go of memory that nothing needs until the next chunk. */
  release(): void {
    if (this.#begin < this.#end || this.#chunkBytes > 0 || this.#repeat) return
    this.frameBuffer = EMPTY
    this.#replace(EMPTY)
  }

  #replace(chunk: Buffer): void {
    const shift = this.#begin
    this.#buffer = chunk
    this.#end = chunk.length
    this.#moveBack(shift)
  }

  /** Goes on to the next chunk, or takes as much of it as the command in work is known to need. */
  #takeChunk(): void {
    const chunk = this.#chunks[this.#firstChunk] ?? EMPTY
    const taken = this.#begin === this.#end ? chunk.length : Math.min(chunk.length, this.#neededBytes())
    if (this.#begin === this.#end) this.#replace(chunk)
    else this.#gather(chunk, taken)
    this.#chunkBytes -= taken
    if (taken < chunk.length) this.#chunks[this.#firstChunk] = chunk.subarray(taken)
    else this.#dropFirstChunk()
  }

  #dropFirstChunk(): void {
    if (++this.#firstChunk < this.#chunks.length) {
      this.#chunks[this.#firstChunk - 1] = EMPTY
      return
    }
    this.#chunks = []
    this.#firstChunk = 0
  }

  /** How many more bytes the command in work needs at least; of a header or an inline command, a guess. */
  #neededBytes(): number {
    if (this.#argumentsLeft > 0 && this.#payloadLeft !== AT_HEADER) return this.#at + this.#payloadLeft - this.#end
    return this.#argumentsLeft > 0 || this.#buffer[this.#at] === STAR ? HEADER_STEP_BYTES : INLINE_STEP_BYTES
  }

  /** A buffer of the socket ends at `#end`, one made by `#grow` may have room behind it. */
  #gather(chunk: Buffer, bytes: number): void {
    if (this.#end + bytes > this.#buffer.length) this.#grow(bytes)
    chunk.copy(this.#buffer, this.#end, 0, bytes)
    this.#end += bytes
  }

  /** Doubles, but not beyond what the argument in work is going to need. */
  #grow(bytes: number): void {
    const held = this.#end - this.#begin
    const known = held + Math.max(bytes, this.#neededBytes()) + HEADER_STEP_BYTES
    const grown = Buffer.allocUnsafeSlow(Math.min(known, 2 * (held + bytes) + HEADER_STEP_BYTES))
    this.#buffer.copy(grown, 0, this.#begin, this.#end)
    this.#buffer = grown
    this.#end -= this.#begin
    this.#moveBack(this.#begin)
  }

  #moveBack(shift: number): void {
    this.#begin -= shift
    this.#at -= shift
    this.#nameFrom -= shift
    this.#nameTo -= shift
  }

  #beginCommand(): 'begun' | ParseOutcome {
    this.#begin = this.#at
    while (this.#at < this.#end) {
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
    this.#skipping = false
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
    if (this.#skipping) this.#begin = end
    this.#payloadLeft = AT_HEADER
    this.#argumentsLeft--
    return 'read'
  }

  #readArgumentHeader(): 'read' | ParseOutcome {
    if (this.#at === this.#end) return 'more'
    const first = this.#buffer[this.#at] ?? 0
    if (first !== DOLLAR) return this.#broken(`expected '$', got '${printable(first)}'`)
    const before = this.#at
    const length = this.#readHeader()
    if (length === INCOMPLETE) return 'more'
    if (length === INVALID || length > this.limits.maxArgumentBytes)
      return this.#broken(`${this.#badWord(length)} bulk length`)
    this.#payloadLeft = length + 2
    this.#commandBytes += this.#at - before + length + 2
    if (this.#commandBytes > this.limits.maxRequestBytes) this.#skipping = true
    return 'read'
  }

  /** Of a command that is skipped, not a byte is kept. */
  #awaitPayload(): 'more' {
    if (this.#skipping) {
      this.#payloadLeft -= this.#end - this.#at
      this.#at = this.#end
      this.#begin = this.#end
    }
    return 'more'
  }

  #rememberName(): void {
    this.#nameFrom = this.#at
    this.#nameTo = this.#at + this.#payloadLeft - 2
  }

  #endCommand(): ParseOutcome {
    this.#argumentsLeft = BETWEEN_COMMANDS
    if (this.#skipping) {
      this.actualBytes = this.#commandBytes
      this.#begin = this.#at
      return 'oversize'
    }
    this.frameBuffer = this.#buffer
    this.frameStart = this.#begin
    this.frameEnd = this.#at
    this.nameStart = this.#nameFrom
    this.nameEnd = this.#nameTo
    this.#begin = this.#at
    return 'frame'
  }

  /** Reads `*12\r\n` or `$12\r\n` at `#at` and moves behind it, or leaves `#at` where it is. */
  #readHeader(): number {
    let value = 0
    let at = this.#at + 1
    for (; at < this.#end; at++) {
      const digit = (this.#buffer[at] ?? 0) - ZERO
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
    }
    if (at + 1 >= this.#end) return at - this.#at > LONGEST_HEADER_BYTES ? INVALID : INCOMPLETE
    if (this.#buffer[at] !== CR || this.#buffer[at + 1] !== LF) return this.#readNegativeHeader()
    if (!canonical(this.#buffer, this.#at + 1, at)) return INVALID
    this.#at = at + 2
    return value
  }

  /** A negative count of arguments is an empty command to the engine; a negative length is an error. */
  #readNegativeHeader(): number {
    const isCount = this.#buffer[this.#at] === STAR
    const end = this.#buffer.subarray(0, this.#end).indexOf('\r\n', this.#at)
    if (end < 0) return this.#end - this.#at > LONGEST_HEADER_BYTES ? INVALID : INCOMPLETE
    if (!isCount || !/^-[1-9]\d{0,8}$/.test(this.#buffer.toString('latin1', this.#at + 1, end))) return INVALID
    this.#at = end + 2
    return 0
  }

  #readInline(): 'blank' | ParseOutcome {
    const lineEnd = this.#buffer.subarray(0, this.#end).indexOf(LF, this.#at)
    if (lineEnd < 0 || lineEnd - this.#at > LONGEST_INLINE_BYTES) {
      return this.#end - this.#begin > LONGEST_INLINE_BYTES ? this.#broken('too big inline request') : 'more'
    }
    const words = splitInline(this.#buffer.toString('latin1', this.#at, lineEnd).replace(/\r$/, ''))
    this.#at = lineEnd + 1
    this.#begin = this.#at
    if (!words) return this.#broken('unbalanced quotes in request')
    return words.length === 0 ? 'blank' : this.#inlineFrame(words)
  }

  #inlineFrame(words: readonly Buffer[]): 'frame' {
    const frame = encodeCommand(words)
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
    this.#chunks = []
    this.#chunkBytes = 0
    this.#firstChunk = 0
    this.#begin = this.#end
    this.#at = this.#end
    this.#argumentsLeft = BETWEEN_COMMANDS
    return 'broken'
  }
}

const EMPTY = Buffer.alloc(0)

/** The engine refuses empty numbers and leading zeros. */
function canonical(buffer: Buffer, start: number, end: number): boolean {
  return end > start && end - start <= 10 && (buffer[start] !== ZERO || end - start === 1)
}

function printable(byte: number): string {
  return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
}

/** The arguments of a whole frame, name first, as views of the frame. */
export function frameArguments(frame: Buffer, start: number, count: number): readonly Buffer[] {
  const args: Buffer[] = []
  let at = frame.indexOf('\r\n', start) + 2
  for (let i = 0; i < count; i++) {
    const headerEnd = frame.indexOf('\r\n', at)
    const length = Number(frame.toString('latin1', at + 1, headerEnd))
    args.push(frame.subarray(headerEnd + 2, headerEnd + 2 + length))
    at = headerEnd + length + 4
  }
  return args
}
