import { randomUUID } from 'node:crypto'
import { TimeSlice, yieldToEventLoop } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Argument } from '../resp/encode.js'
import { type LongText, readLongText } from './large-commands.js'
import {
  type CommandArguments,
  notJson,
  type ParsedCommand,
  parseCommand,
  parseJson,
  parsePipeline,
  pathCommand,
  type Target,
} from './parse-commands.js'
import { prepareCommand, prepareLargeCommand, prepareLargeSlot, prepareSlots, type Slot } from './slots.js'

/** Limits of a body, checked before it is parsed. */
export interface BodyLimits {
  /** Most commands of a pipeline or transaction. */
  readonly commands: number
}

/** Most arguments of one command in JSON. */
const MAX_ARGUMENTS = 262_144
/** Most values of a body, commands and arguments together. */
const MAX_VALUES = 524_288
/** Most characters of a number; longer numbers have to be sent as text. */
const MAX_NUMBER_LENGTH = 1_024
/** Most levels of arrays and objects. Commands need two; deeper ones are refused before parsing. */
const MAX_LEVELS = 16

/** A slice of a body ends at the first comma behind this many bytes or values. */
const SLICE_BYTES = 65_536
const SLICE_VALUES = 4_096

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const COLON = 0x3a
const LOWER_U = 0x75
/** Length of an escape such as `\u00e9`. */
const UNICODE_ESCAPE_BYTES = 6
const LAST_BLANK = 0x20

/** A string of at least this many bytes is read separately. */
const LONG_TEXT_BYTES = 65_536
/** Most bytes of an array or object among the arguments, which is always a mistake. */
const MAX_NESTED_BYTES = 1_048_576
/** A slice may begin or end at a comma only if a value is found within this many blanks on either side. */
const MAX_BLANKS = 64

/** Content of the array in a body: arguments, or arrays of arguments. */
export type BodyKind = 'command' | 'pipeline'

/** A comma where a body may be cut. */
interface Cut {
  readonly at: number
  /** Whether the comma is between arguments of a command, not between commands. */
  readonly isWithinCommand: boolean
}

/**
 * Counts the values of a JSON text without parsing it, and finds where its array can be cut into slices. Text that is no
 * JSON passes the scan, and fails when the slices are parsed.
 */
export class JsonScan {
  /** Commas where the array may be cut. */
  readonly cuts: Cut[] = []
  /** The long strings of the text, in order. */
  readonly longTexts: LongText[] = []
  readonly #body: Buffer
  readonly #kind: BodyKind
  readonly #limits: BodyLimits
  #at = 0
  #isInString = false
  #depth = 0
  #commands = 0
  /** Arguments of the current command. */
  #arguments = 0
  #values = 0
  #bareBytes = 0
  #lastCut = 0
  #valuesAtCut = 0
  /** Position of the opening quote of the current string. */
  #textAt = 0
  #textCuts: number[] = []
  /** Beginning of the outermost array or object among the arguments. */
  #nestedAt = 0

  constructor(body: Buffer, kind: BodyKind, limits: BodyLimits) {
    this.#body = body
    this.#kind = kind
    this.#limits = limits
  }

  /** Scans `bytes` more bytes. @returns whether any are left. @throws HomeportError */
  scan(bytes: number): boolean {
    const end = Math.min(this.#body.length, this.#at + bytes)
    while (this.#at < end) {
      if (this.#isInString) this.#skipString(end)
      else this.#readByte(this.#body[this.#at++] ?? 0)
    }
    if (this.#isInString) this.#textCuts.push(this.#at)
    if (this.#depth > this.#argumentDepth && this.#at - this.#nestedAt > MAX_NESTED_BYTES) throw nested()
    return this.#at < this.#body.length
  }

  /** Whether the text ends within a string. */
  get isTorn(): boolean {
    return this.#isInString
  }

  /** Levels of arrays around an argument. */
  get #argumentDepth(): number {
    return this.#kind === 'pipeline' ? 2 : 1
  }

  #skipString(end: number): void {
    let at = this.#at
    for (; at < end; at++) {
      const byte = this.#body[at]
      if (byte === BACKSLASH) at += this.#body[at + 1] === LOWER_U ? UNICODE_ESCAPE_BYTES - 1 : 1
      else if (byte === QUOTE) {
        at++
        this.#endString(at)
        break
      }
    }
    this.#at = at
  }

  #endString(to: number): void {
    this.#isInString = false
    const [from, cuts] = [this.#textAt, this.#textCuts]
    const isLong = to - from >= LONG_TEXT_BYTES
    if (isLong) this.longTexts.push({ from, to, cuts })
    if (isLong || cuts.length > 0) this.#textCuts = []
  }

  #readByte(byte: number): void {
    if (byte > LAST_BLANK && !isStructure(byte)) {
      if (++this.#bareBytes > MAX_NUMBER_LENGTH)
        throw malformed(`a number has more than ${MAX_NUMBER_LENGTH} digits, send it as text`)
      return
    }
    this.#bareBytes = 0
    if (byte === QUOTE) {
      this.#isInString = true
      this.#textAt = this.#at - 1
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.#open()
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.#depth--
    else if (byte === COMMA) this.#next()
  }

  #open(): void {
    if (++this.#depth > MAX_LEVELS) throw nested()
    if (this.#depth === this.#argumentDepth + 1) this.#nestedAt = this.#at
    this.#countValue()
    if (this.#kind === 'pipeline' && this.#depth === 2) this.#beginCommand()
  }

  #next(): void {
    this.#countValue()
    if (this.#depth === 1 || this.#depth === this.#argumentDepth) this.#cut()
    const isBetweenArguments = this.#depth === this.#argumentDepth
    if (isBetweenArguments && ++this.#arguments >= MAX_ARGUMENTS) {
      throw new HomeportError('too_many_arguments', { limit: MAX_ARGUMENTS, of: 'command' })
    }
  }

  #countValue(): void {
    if (++this.#values > MAX_VALUES) throw new HomeportError('too_many_arguments', { limit: MAX_VALUES, of: 'request' })
  }

  #beginCommand(): void {
    this.#arguments = 0
    if (++this.#commands > this.#limits.commands) {
      throw new HomeportError('too_many_commands', { limit: this.#limits.commands })
    }
  }

  #cut(): void {
    const at = this.#at - 1
    if (at - this.#lastCut < SLICE_BYTES && this.#values - this.#valuesAtCut < SLICE_VALUES) return
    // Without a value between the comma and a bracket, both slices could be valid JSON although the whole is not.
    if (!this.#hasValue(at, -1, OPEN_ARRAY) || !this.#hasValue(at, 1, CLOSE_ARRAY)) return
    this.cuts.push({ at, isWithinCommand: this.#depth > 1 })
    this.#lastCut = at
    this.#valuesAtCut = this.#values
  }

  /** Whether the next byte in this direction that is not blank differs from `bracket`. */
  #hasValue(comma: number, direction: 1 | -1, bracket: number): boolean {
    for (let blanks = 0; blanks <= MAX_BLANKS; blanks++) {
      const byte = this.#body[comma + direction * (blanks + 1)] ?? bracket
      if (byte > LAST_BLANK) return byte !== bracket
    }
    return false
  }
}

const nested = (): HomeportError => malformed('objects and arrays are not supported as arguments, send them as text')

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

/** A body up to this length, bytes, is parsed at once: it is too short to make other requests wait. */
const LARGE_JSON_BYTES = 16_384

/** Whether a request has one command, several, or several that take effect together or not at all. */
export type Shape = 'single' | 'pipeline' | 'transaction'

/** The shape of a request, by its path (reference redis 4.2). */
export function shapeOf({ path }: Target): Shape {
  switch (path) {
    case '/pipeline':
    case '/pipeline/':
      return 'pipeline'
    case '/multi-exec':
    case '/multi-exec/':
      return 'transaction'
    default:
      return 'single'
  }
}

/**
 * Reads the commands of a request that has arrived whole. A large JSON body is read in slices, as a promise.
 * @throws HomeportError if the body as a whole is wrong
 */
export function readSlots(
  target: Target,
  body: Buffer,
  maxCommands: number,
): readonly Slot[] | Promise<readonly Slot[]> {
  const isLarge = body.length > LARGE_JSON_BYTES
  if (shapeOf(target) !== 'single') {
    return isLarge ? readLargePipeline(body, { commands: maxCommands }) : prepareSlots(parsePipeline(body.toString()))
  }
  if (target.path !== '/') return [prepareCommand(pathCommand(target, body))]
  return isLarge
    ? readLargeCommand(body).then(async (args) => [await prepareLargeCommand(args)])
    : [prepareCommand(parseCommand(body.toString()))]
}

/** Bytes that are scanned in one turn of the event loop. */
const SCAN_BYTES = 1_048_576

/**
 * Reads a large body of `POST /` in slices that yield to the event loop. First counts its values, then parses its array
 * slice by slice. @throws HomeportError as `parseCommand` does, `too_many_arguments`
 */
export async function readLargeCommand(body: Buffer): Promise<CommandArguments> {
  const args: Argument[] = []
  for await (const { json, texts } of slicesOf(body, 'command', { commands: 1 })) {
    for (const arg of parseCommand(json)) args.push(withText(arg, texts))
  }
  return args
}

/** Like `readLargeCommand`, for the body of `/pipeline` and `/multi-exec`. @throws HomeportError also `too_many_commands` */
export async function readLargePipeline(body: Buffer, limits: BodyLimits): Promise<readonly Slot[]> {
  const parsed: ParsedCommand[] = []
  // A syntax error anywhere refuses the whole body, so all of it is parsed before any command is prepared.
  for await (const { json, texts, isWithinCommand } of slicesOf(body, 'pipeline', limits)) {
    const commands = parsePipeline(json).map((command) => withTexts(command, texts))
    const [first] = commands
    const open = isWithinCommand ? parsed.pop() : undefined
    if (open && first) commands[0] = joined(open, first)
    for (const command of commands) parsed.push(command)
  }
  return prepareInSlices(parsed)
}

function joined(begun: ParsedCommand, rest: ParsedCommand): ParsedCommand {
  if (begun instanceof HomeportError) return begun
  return rest instanceof HomeportError ? rest : begun.concat(rest)
}

async function prepareInSlices(parsed: readonly ParsedCommand[]): Promise<readonly Slot[]> {
  const slots: Slot[] = []
  const slice = new TimeSlice()
  for (const command of parsed) {
    slots.push(await prepareLargeSlot(command))
    if (slice.isOver) await slice.rest()
  }
  return slots
}

/** Some elements of the array in a body. */
interface Slice {
  /** JSON of an array of these elements, with a name in place of each long string. */
  readonly json: string
  /** The long strings by their names. */
  readonly texts: ReadonlyMap<string, Buffer>
  /** Whether the slice begins with more arguments of a command that the previous slice has begun. */
  readonly isWithinCommand: boolean
}

/** The array in a body as several arrays, with a yield after each. */
async function* slicesOf(body: Buffer, kind: BodyKind, limits: BodyLimits): AsyncGenerator<Slice> {
  const scan = new JsonScan(body, kind, limits)
  while (scan.scan(SCAN_BYTES)) await yieldToEventLoop()
  const shown = kind === 'pipeline' ? 'pipeline request' : kind
  if (scan.isTorn) throw notJson(shown)
  const parse = (json: string): string => String(parseJson(json, shown))
  const longTexts = scan.longTexts.values()
  // A random prefix, so that no client can send the name of a long string as an argument.
  const prefix = randomUUID()
  let long = longTexts.next().value
  let from: Cut | undefined
  for (const to of [...scan.cuts, undefined]) {
    const texts = new Map<string, Buffer>()
    // The comma before a slice becomes its opening brackets, the comma behind it the closing ones.
    let json = from ? bracketsOf(from, '[') : ''
    let at = from ? from.at + 1 : 0
    for (const end = to?.at ?? body.length; long && long.from < end; long = longTexts.next().value) {
      const name = `${prefix}${texts.size}`
      texts.set(name, await readLongText(body, long, parse))
      json += `${body.toString('utf8', at, long.from)}"${name}"`
      at = long.to
    }
    json += body.toString('utf8', at, to?.at) + (to ? bracketsOf(to, ']') : '')
    yield { json, texts, isWithinCommand: from?.isWithinCommand === true }
    await yieldToEventLoop()
    from = to
  }
}

const bracketsOf = ({ isWithinCommand }: Cut, bracket: string): string => bracket.repeat(isWithinCommand ? 2 : 1)

function withTexts(command: ParsedCommand, texts: Slice['texts']): ParsedCommand {
  if (command instanceof HomeportError || texts.size === 0) return command
  return command.map((arg) => withText(arg, texts))
}

function withText(arg: Argument, texts: Slice['texts']): Argument {
  return (texts.size > 0 && typeof arg === 'string' && texts.get(arg)) || arg
}
