import { yieldToEventLoop } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  type CommandArguments,
  type ParsedCommand,
  parseCommand,
  parsePipeline,
  pathCommand,
  type Target,
} from './parse-commands.js'
import { prepareCommand, prepareSlots, type Slot } from './slots.js'

/** Limits of a body, checked before it is parsed. */
export interface BodyLimits {
  /** Most commands of a pipeline or transaction. */
  readonly commands: number
}

/** Most arguments of one command in JSON. */
const MOST_ARGUMENTS = 262_144
/** Most values of a body, commands and arguments together. */
const MOST_VALUES = 524_288
/** Most characters of a number; longer ones have to be sent as text. */
const LONGEST_NUMBER = 1_024
/** Most levels of arrays and objects. Commands need two; a mistake deeper than this is refused before parsing. */
const MOST_LEVELS = 16

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
const LAST_BLANK = 0x20

/** What the array in a body holds: arguments, or arrays of arguments. */
export type BodyKind = 'command' | 'pipeline'

/**
 * Counts the values of a JSON text without parsing it, and finds where its array can be cut into slices. Text that is no
 * JSON passes: parsing the slices finds that out.
 */
export class JsonScan {
  /** Where the array may be cut: positions of commas between its elements. */
  readonly cuts: number[] = []
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
    if (++this.#depth > MOST_LEVELS)
      throw malformed('objects and arrays are not supported as arguments, send them as text')
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
    if (at - this.#lastCut < SLICE_BYTES && this.#values - this.#valuesAtCut < SLICE_VALUES) return
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

/** A body up to this length is parsed at once, bytes: it is too short to make other requests wait. */
const LARGE_JSON_BYTES = 16_384

/** How the commands of a request belong together: one, several, or several that take effect together or not at all. */
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
 * @throws HomeportError what is wrong with the body as a whole
 */
export function readSlots(
  target: Target,
  body: Buffer,
  mostCommands: number,
): readonly Slot[] | Promise<readonly Slot[]> {
  const isLarge = body.length > LARGE_JSON_BYTES
  if (shapeOf(target) !== 'single') {
    return isLarge ? readLargePipeline(body, { commands: mostCommands }) : prepareSlots(parsePipeline(body.toString()))
  }
  if (target.path !== '/') return [prepareCommand(pathCommand(target, body))]
  return isLarge
    ? readLargeCommand(body).then((args) => [prepareCommand(args)])
    : [prepareCommand(parseCommand(body.toString()))]
}

/** Bytes that are scanned in one turn of the event loop. */
const SCAN_BYTES = 1_048_576

/**
 * Reads a large body of `POST /` in slices, between which other requests run. Counts what it holds, then parses its array
 * slice by slice. @throws HomeportError as `parseCommand` does, `too_many_arguments`
 */
export async function readLargeCommand(body: Buffer): Promise<CommandArguments> {
  const cuts = await cutsOf(body, 'command', { commands: 1 })
  const args: (string | Buffer)[] = []
  for (const slice of slicesOf(body, cuts)) {
    for (const arg of parseCommand(slice)) args.push(arg)
    await yieldToEventLoop()
  }
  return args
}

/** The same for the body of `/pipeline` and `/multi-exec`. @throws HomeportError `too_many_commands` as well */
export async function readLargePipeline(body: Buffer, limits: BodyLimits): Promise<readonly Slot[]> {
  const cuts = await cutsOf(body, 'pipeline', limits)
  const parsed: ParsedCommand[] = []
  // A syntax error anywhere refuses the whole body, so all of it is parsed before any command is prepared.
  for (const slice of slicesOf(body, cuts)) {
    for (const command of parsePipeline(slice)) parsed.push(command)
    await yieldToEventLoop()
  }
  return prepareInSlices(parsed)
}

/** Commands that are prepared in one turn of the event loop. */
const PREPARED_COMMANDS = 1_000

async function prepareInSlices(parsed: readonly ParsedCommand[]): Promise<readonly Slot[]> {
  const slots: Slot[] = []
  for (let at = 0; at < parsed.length; at += PREPARED_COMMANDS) {
    for (const slot of prepareSlots(parsed.slice(at, at + PREPARED_COMMANDS))) slots.push(slot)
    await yieldToEventLoop()
  }
  return slots
}

async function cutsOf(body: Buffer, kind: 'command' | 'pipeline', limits: BodyLimits): Promise<readonly number[]> {
  const scan = new JsonScan(body, kind, limits)
  while (scan.scan(SCAN_BYTES)) await yieldToEventLoop()
  return scan.cuts
}

/** The array in a body as several arrays, each with some of its elements. */
function* slicesOf(body: Buffer, cuts: readonly number[]): Generator<string> {
  let from = 0
  for (const to of [...cuts, body.length]) {
    yield sliceOf(body, from, to)
    from = to
  }
}

/** The comma before a slice becomes its opening bracket, the comma behind it the closing one. */
function sliceOf(body: Buffer, from: number, to: number): string {
  const opening = body[from] === COMMA ? '[' : ''
  const text = body.toString('utf8', opening === '' ? from : from + 1, to)
  return `${opening}${text}${to < body.length ? ']' : ''}`
}
