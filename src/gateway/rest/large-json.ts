import { nextTurn } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type CommandArguments, type ParsedCommand, parseCommand, parsePipeline } from './parse-commands.js'
import { prepareSlots, type Slot } from './slots.js'

/** What a body may hold, counted before anything is made of it. */
export interface BodyLimits {
  /** Most commands of a pipeline or transaction. */
  readonly commands: number
}

/** Most arguments of one command that comes as JSON. */
const MOST_ARGUMENTS = 262_144
/** Most values of a body altogether, commands and arguments. */
const MOST_VALUES = 524_288
/** Most characters of a number; a longer one has to be sent as text. */
const LONGEST_NUMBER = 1_024
/** Commands hold arguments and these hold nothing, so every deeper level is a mistake. */
const DEEPEST = 16

/** A piece of a body ends at the next boundary behind so many bytes, or so many values. */
const PIECE_BYTES = 65_536
const PIECE_VALUES = 4_096

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const COLON = 0x3a
const LAST_BLANK = 0x20

/** How the list in a body is built: of arguments, or of lists of arguments. */
export type BodyKind = 'command' | 'pipeline'

/**
 * Counts what a JSON text holds, without making anything of it, and finds where its list can be cut into pieces. What is
 * no JSON is found out later, by whoever parses the pieces.
 */
export class JsonScan {
  /** Where the list may be cut: positions of commas between its elements. */
  readonly cuts: number[] = []
  readonly #body: Buffer
  readonly #kind: BodyKind
  readonly #limits: BodyLimits
  #at = 0
  #isInString = false
  #depth = 0
  #commands = 0
  /** Of the present command. */
  #arguments = 0
  #values = 0
  #bareBytes = 0
  #lastCut = 0
  #valuesAtCut = 0

  constructor(body: Buffer, kind: BodyKind, limits: BodyLimits) {
    this.#body = body
    this.#kind = kind
    this.#limits = limits
  }

  /** Looks at so many more bytes. @returns whether there are any left. @throws HomeportError */
  scan(bytes: number): boolean {
    const end = Math.min(this.#body.length, this.#at + bytes)
    while (this.#at < end) {
      if (this.#isInString) this.#skipString(end)
      else this.#readByte(this.#body[this.#at++] ?? 0)
    }
    return this.#at < this.#body.length
  }

  #skipString(end: number): void {
    let at = this.#at
    for (; at < end; at++) {
      const byte = this.#body[at]
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) {
        this.#isInString = false
        at++
        break
      }
    }
    this.#at = at
  }

  #readByte(byte: number): void {
    if (byte > LAST_BLANK && !isStructure(byte)) {
      if (++this.#bareBytes > LONGEST_NUMBER)
        throw malformed(`a number has more than ${LONGEST_NUMBER} digits, send it as text`)
      return
    }
    this.#bareBytes = 0
    if (byte === QUOTE) this.#isInString = true
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.#open()
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.#depth--
    else if (byte === COMMA) this.#next()
  }

  #open(): void {
    if (++this.#depth > DEEPEST) throw malformed('objects and arrays are not supported as arguments, send them as text')
    this.#countValue()
    if (this.#kind === 'pipeline' && this.#depth === 2) this.#beginCommand()
  }

  #next(): void {
    this.#countValue()
    if (this.#depth === 1) this.#cut()
    const isBetweenArguments = this.#depth === (this.#kind === 'pipeline' ? 2 : 1)
    if (isBetweenArguments && ++this.#arguments >= MOST_ARGUMENTS) {
      throw new HomeportError('too_many_arguments', { limit: MOST_ARGUMENTS, of: 'command' })
    }
  }

  #countValue(): void {
    if (++this.#values > MOST_VALUES)
      throw new HomeportError('too_many_arguments', { limit: MOST_VALUES, of: 'request' })
  }

  #beginCommand(): void {
    this.#arguments = 0
    if (++this.#commands > this.#limits.commands) {
      throw new HomeportError('too_many_commands', { limit: this.#limits.commands })
    }
  }

  #cut(): void {
    const at = this.#at - 1
    if (at - this.#lastCut < PIECE_BYTES && this.#values - this.#valuesAtCut < PIECE_VALUES) return
    this.cuts.push(at)
    this.#lastCut = at
    this.#valuesAtCut = this.#values
  }
}

function isStructure(byte: number): boolean {
  switch (byte) {
    case QUOTE:
    case COMMA:
    case COLON:
    case OPEN_ARRAY:
    case CLOSE_ARRAY:
    case OPEN_OBJECT:
    case CLOSE_OBJECT:
      return true
    default:
      return false
  }
}

function malformed(problem: string): HomeportError {
  return new HomeportError('command_malformed', { problem })
}

/** A body up to this length is read in one go, bytes: it cannot hold so much that anybody would have to wait. */
export const LARGE_JSON_BYTES = 16_384

/** So much is looked at in one turn of the event loop, bytes. */
const SCAN_BYTES = 1_048_576

/**
 * Reads a large body of `POST /` in slices, between which others are served: what it holds is counted first, then its list
 * is parsed piece by piece. @throws HomeportError as `parseCommand` does, `too_many_arguments`
 */
export async function readLargeCommand(body: Buffer): Promise<CommandArguments> {
  const cuts = await cutsOf(body, 'command', { commands: 1 })
  const args: (string | Buffer)[] = []
  for (const piece of pieces(body, cuts)) {
    for (const arg of parseCommand(piece)) args.push(arg)
    await nextTurn()
  }
  return args
}

/** The same for the body of `/pipeline` and `/multi-exec`. @throws HomeportError `too_many_commands` as well */
export async function readLargePipeline(body: Buffer, limits: BodyLimits): Promise<readonly Slot[]> {
  const cuts = await cutsOf(body, 'pipeline', limits)
  const parsed: ParsedCommand[] = []
  // What cannot be read is an error of the whole, so all of it is parsed before anything else is done.
  for (const piece of pieces(body, cuts)) {
    for (const command of parsePipeline(piece)) parsed.push(command)
    await nextTurn()
  }
  return prepareInTurns(parsed)
}

const PREPARED_A_TURN = 1_000

async function prepareInTurns(parsed: readonly ParsedCommand[]): Promise<readonly Slot[]> {
  const slots: Slot[] = []
  for (let at = 0; at < parsed.length; at += PREPARED_A_TURN) {
    for (const slot of prepareSlots(parsed.slice(at, at + PREPARED_A_TURN))) slots.push(slot)
    await nextTurn()
  }
  return slots
}

async function cutsOf(body: Buffer, kind: 'command' | 'pipeline', limits: BodyLimits): Promise<readonly number[]> {
  const scan = new JsonScan(body, kind, limits)
  while (scan.scan(SCAN_BYTES)) await nextTurn()
  return scan.cuts
}

/** The list in a body as several lists, each with a part of its elements. */
function* pieces(body: Buffer, cuts: readonly number[]): Generator<string> {
  let from = 0
  for (const to of [...cuts, body.length]) {
    yield pieceOf(body, from, to)
    from = to
  }
}

/** A comma before the piece becomes the bracket that opens it, and a comma behind it the one that closes it. */
function pieceOf(body: Buffer, from: number, to: number): string {
  const opening = body[from] === COMMA ? '[' : ''
  const text = body.toString('utf8', opening === '' ? from : from + 1, to)
  return `${opening}${text}${to < body.length ? ']' : ''}`
}
