import { nextTurn } from '../../base/index.js'
import { type CommandArguments, type ParsedCommand, parseCommand, parsePipeline } from './json-commands.js'
import { type BodyLimits, JsonScan } from './json-scan.js'
import { prepareSlots, type Slot } from './slots.js'

/** A body up to this length is read in one go, bytes: it cannot hold so much that anybody would have to wait. */
export const LARGE_JSON_BYTES = 16_384

/** So much is looked at in one turn of the event loop, bytes. */
const SCAN_BYTES = 1_048_576
const COMMA = 0x2c

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
