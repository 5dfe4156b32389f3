import { randomFrom } from '../../base/testing/random.js'
import { frameArguments } from '../resp/arguments.js'
import type { ParseOutcome } from '../resp/command-limits.js'
import { limitsAfterLogin } from '../resp/command-limits.js'
import { CommandParser } from '../resp/command-parser.js'
import { encodeCommand } from '../resp/encode.js'
import { COMMON_BLOCK } from '../resp/lent-memory.js'
import { ReplyFormatError, ReplyFramer } from '../resp/reply-framer.js'
import { ReplyReader } from '../rest/reply-reader.js'
import { pick, type Random } from './random-commands.js'

const LIMITS = { ...limitsAfterLogin(2_000), largeArgumentBytes: 40 }
const DAMAGE = [...Buffer.from('*$:+-_,#(=!~%>|?\r\n 0123456789-\0\xff"\'\\', 'latin1')]

/**
 * Feeds the codec one input that is derived from the seed alone, in both directions. Throws when an invariant is broken:
 * only declared errors, the same outcome wherever the bytes are cut, every whole command and reply found, and no more
 * memory than the input and the limit allow.
 */
export function fuzzOnce(seed: number): void {
  const random = randomFrom(seed)
  if (random() < 0.5) fuzzCommands(random)
  else fuzzReplies(random)
}

function fuzzCommands(random: Random): void {
  const commands = Array.from({ length: 1 + below(random, 4) }, () => randomArguments(random))
  const whole = Buffer.concat(commands.map((args) => (random() < 0.15 ? inline(random) : encodeCommand(args))))
  const bytes = random() < 0.6 ? damaged(random, whole) : whole
  const once = new Reading().take([bytes])
  const inPieces = new LentReading(random).take(pieces(random, bytes))
  if (JSON.stringify(once) !== JSON.stringify(inPieces)) {
    throw new Error(`other cuts, other commands: ${JSON.stringify([once, inPieces])}`)
  }
}

/** Reads bytes that arrive in pieces with a parser, and checks its invariants. */
class Reading {
  readonly parser = new CommandParser()
  readonly #seen: unknown[] = []

  take(chunks: readonly Buffer[]): readonly unknown[] {
    this.parser.limits = LIMITS
    for (const chunk of chunks) if (!this.takeChunk(chunk)) break
    return this.#seen
  }

  /** @returns whether more commands may follow */
  takeChunk(chunk: Buffer): boolean {
    const { parser } = this
    this.push(chunk)
    for (let outcome = parser.next(); outcome !== 'more'; outcome = parser.next()) {
      this.note(outcome)
      if (outcome === 'broken') return false
    }
    parser.release()
    // An inline command may be longer than a request, but not longer than its own limit.
    if (parser.heldBytes > LIMITS.maxRequestBytes + 65_536) throw new Error(`${parser.heldBytes} bytes are held back`)
    return true
  }

  push(chunk: Buffer): void {
    this.parser.push(chunk)
  }

  note(outcome: ParseOutcome): void {
    const { problem, actualBytes } = this.parser
    if (outcome === 'frame') this.see(checkedFrame(this.parser))
    else if (outcome === 'broken') this.see(problem)
    else if (outcome === 'oversize') this.see(actualBytes)
  }

  see(what: unknown): void {
    this.#seen.push(what)
  }
}

const END = Buffer.alloc(0)
/** Memory after a piece that the parser must not write to, bytes. */
const BYTES_BEHIND = 4096

/** Like `Reading`, with memory that is overwritten after each piece, and with commands that are streamed or repeated. */
class LentReading extends Reading {
  readonly #random: Random
  #streamed = ''

  constructor(random: Random) {
    super()
    this.#random = random
  }

  override take(chunks: readonly Buffer[]): readonly unknown[] {
    return super.take([...chunks, END])
  }

  override takeChunk(chunk: Buffer): boolean {
    const mayFollow = chunk !== END && this.#random() < 0.2 ? this.#hold(chunk) : super.takeChunk(chunk)
    COMMON_BLOCK.fill('*', 0, chunk.length + BYTES_BEHIND)
    return mayFollow
  }

  override push(chunk: Buffer): void {
    chunk.copy(COMMON_BLOCK)
    this.parser.push(COMMON_BLOCK, chunk.length)
  }

  /** Pushes input without taking commands, as for a client that has to wait. */
  #hold(chunk: Buffer): true {
    this.push(chunk)
    this.parser.release()
    return true
  }

  override note(outcome: ParseOutcome): void {
    const { parser } = this
    if (outcome === 'large' || outcome === 'frame') this.#repeat()
    const { frameBuffer, frameStart, frameEnd } = parser
    const bytes = frameBuffer.toString('latin1', frameStart, frameEnd)
    if (outcome === 'large' && this.#random() < 0.5) {
      parser.stream()
      this.#streamed = bytes
    } else if (outcome === 'part') this.#streamed += bytes
    else if (outcome === 'last') this.see(this.#streamed + bytes)
    else super.note(outcome)
  }

  /** Repeats the present command now and then, like a command that has to wait. */
  #repeat(): void {
    if (this.#random() < 0.8) return
    this.parser.repeat()
    this.parser.release()
    this.parser.next()
  }
}

/**
 * A frame that is sent to the engine has to be exactly the command that the gateway has parsed. The engine ignores the two
 * bytes after an argument, so these may have any value.
 */
function checkedFrame(parser: CommandParser): string {
  const { frameBuffer, frameStart, frameEnd, argumentCount, nameStart, nameEnd } = parser
  const frame = frameBuffer.subarray(frameStart, frameEnd)
  const args = frameArguments(frameBuffer, frameStart, argumentCount)
  if (!withLineEnds(frame, args).equals(encodeCommand(args)))
    throw new Error(`the engine would read ${JSON.stringify(frame.toString())}`)
  if (args[0]?.equals(frameBuffer.subarray(nameStart, nameEnd)) !== true) throw new Error('the name is another word')
  return frame.toString('latin1')
}

function withLineEnds(frame: Buffer, args: readonly Buffer[]): Buffer {
  const repaired = Buffer.from(frame)
  for (const arg of args) repaired.write('\r\n', arg.byteOffset + arg.length - frame.byteOffset, 'latin1')
  return repaired
}

function fuzzReplies(random: Random): void {
  const protocol = random() < 0.5 ? 2 : 3
  const replies = Array.from({ length: 1 + below(random, 5) }, () => randomReply(random, protocol, 3))
  const whole = Buffer.from(replies.join(''), 'latin1')
  if (random() < 0.5) {
    const bytes = damaged(random, whole)
    compareEnds(endsOf([bytes]), endsOf(pieces(random, bytes)))
    return
  }
  let end = 0
  compareEnds(
    replies.map((reply) => (end += reply.length)),
    endsOf(pieces(random, whole)),
  )
  if (protocol === 2) readAll(whole, replies.length, 1 + below(random, 40))
}

/** The ends of replies; `broken` as the last item when bytes that are no reply follow. */
function endsOf(chunks: readonly Buffer[]): (number | 'broken')[] {
  const framer = new ReplyFramer()
  const found: (number | 'broken')[] = []
  let offset = 0
  try {
    for (const chunk of chunks) {
      for (let at = 0; at < chunk.length; ) {
        at = framer.scan(chunk, at, 1)
        if (framer.completed === 1) found.push(offset + at)
      }
      offset += chunk.length
    }
  } catch (error) {
    if (!(error instanceof ReplyFormatError)) throw error
    found.push('broken')
  }
  return found
}

function compareEnds(expected: readonly unknown[], found: readonly unknown[]): void {
  if (JSON.stringify(expected) !== JSON.stringify(found)) {
    throw new Error(`replies end at ${JSON.stringify(expected)}, but were found at ${JSON.stringify(found)}`)
  }
}

/** Checks that the replies become valid JSON, and the same JSON when they are read in slices of a few bytes. */
function readAll(bytes: Buffer, count: number, sliceBytes: number): void {
  for (const encoding of ['plain', 'base64'] as const) {
    const reader = new ReplyReader(bytes, encoding)
    const sliced = new ReplyReader(bytes, encoding)
    for (let i = 0; i < count; i++) {
      const reply = reader.next()
      if ('json' in reply) JSON.parse(reply.json)
      let inSlices = sliced.readSome(sliceBytes)
      while (inSlices === undefined) inSlices = sliced.readSome(sliceBytes)
      const same = 'pieces' in inSlices ? { json: inSlices.pieces.join('') } : inSlices
      if (JSON.stringify(same) !== JSON.stringify(reply)) {
        throw new Error(
          `a reply is ${JSON.stringify(same)} when it is read in slices, and ${JSON.stringify(reply)} at once`,
        )
      }
    }
    if (reader.position !== bytes.length) throw new Error(`${bytes.length - reader.position} bytes were not read`)
  }
}

function randomArguments(random: Random): readonly Buffer[] {
  return Array.from({ length: 1 + below(random, 5) }, () => randomBytes(random))
}

function randomBytes(random: Random): Buffer {
  const length = random() < 0.05 ? below(random, 3_000) : below(random, 24)
  const bytes = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; at++) bytes[at] = random() < 0.3 ? pick(random, DAMAGE) : below(random, 256)
  return bytes
}

function inline(random: Random): Buffer {
  const words = Array.from({ length: below(random, 4) }, () =>
    pick(random, ['GET', '"a\\x41 b"', "'it\\'s'", 'key', '"']),
  )
  return Buffer.from(`${words.join(' ')}${random() < 0.5 ? '\r\n' : '\n'}`)
}

function randomReply(random: Random, protocol: 2 | 3, depth: number): string {
  const kind = depth === 0 || random() < 0.7 ? scalar(random, protocol) : undefined
  if (kind !== undefined) return kind
  const length = below(random, 4)
  const items = (count: number): string =>
    Array.from({ length: count }, () => randomReply(random, protocol, depth - 1)).join('')
  const type = protocol === 2 ? '*' : pick(random, ['*', '~', '>', '%'])
  return `${type}${length}\r\n${items(type === '%' ? 2 * length : length)}`
}

function scalar(random: Random, protocol: 2 | 3): string {
  const line = pick(random, ['OK', 'PONG', '', 'a"b\\c'])
  const bulk = randomBytes(random).toString('latin1')
  const both = [`+${line}\r\n`, `-ERR ${line}\r\n`, `:${below(random, 1e9) - 5e8}\r\n`, '$-1\r\n', '*-1\r\n']
  const newer = ['_\r\n', '#t\r\n', ',1.5\r\n', '(12345678901234567890\r\n', `=${bulk.length + 4}\r\ntxt:${bulk}\r\n`]
  if (random() < 0.4) return `$${bulk.length}\r\n${bulk}\r\n`
  return pick(random, protocol === 2 ? both : [...both, ...newer])
}

/** The same with some bytes changed, lost, doubled or moved. */
function damaged(random: Random, bytes: Buffer): Buffer {
  let damage = bytes
  for (let i = 1 + below(random, 3); i > 0; i--) {
    const at = below(random, damage.length + 1)
    const to = Math.min(damage.length, at + 1 + below(random, 6))
    const [head, middle, tail] = [damage.subarray(0, at), damage.subarray(at, to), damage.subarray(to)]
    const kind = random()
    if (kind < 0.5) damage = Buffer.concat([head, Buffer.from([pick(random, DAMAGE)]), middle.subarray(1), tail])
    else if (kind < 0.7) damage = Buffer.concat([head, tail])
    else if (kind < 0.9) damage = Buffer.concat([head, middle, middle, tail])
    else damage = Buffer.concat([tail, head, middle])
  }
  return damage
}

function pieces(random: Random, bytes: Buffer): readonly Buffer[] {
  const longest = pick(random, [1, 2, 7, 40, 400])
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + 1 + below(random, longest))
    chunks.push(bytes.subarray(at, end))
    at = end
  }
  return chunks
}

function below(random: Random, bound: number): number {
  return Math.floor(random() * bound)
}
