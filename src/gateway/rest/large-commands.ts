import { StringDecoder } from 'node:string_decoder'
import { yieldToEventLoop } from '../../base/index.js'
import type { Argument } from '../resp/encode.js'
import { joinInSlices } from '../resp/join-in-slices.js'

/** A long string in a JSON text. */
export interface LongText {
  /** Position of the opening quote. */
  readonly from: number
  /** Position behind the closing quote. */
  readonly to: number
  /** Positions where the string may be cut: not in an escape. */
  readonly cuts: readonly number[]
}

/**
 * Reads a long string in slices that yield to the event loop.
 * @param parse reads a short string, with its quotes
 */
export async function readLongText(body: Buffer, long: LongText, parse: (json: string) => string): Promise<Buffer> {
  const pieces: Buffer[] = []
  const decoder = new StringDecoder('utf8')
  const end = long.to - 1
  let at = long.from + 1
  let half = ''
  for (const cut of [...long.cuts, end]) {
    const json = decoder.write(body.subarray(at, cut)) + (cut === end ? decoder.end() : '')
    const text = half + parse(`"${json}"`)
    // Two escapes may make one character (a surrogate pair), so its first half waits for the next slice.
    half = cut < end && isFirstHalf(text.charCodeAt(text.length - 1)) ? text.slice(-1) : ''
    pieces.push(Buffer.from(half === '' ? text : text.slice(0, -1)))
    at = cut
    await yieldToEventLoop()
  }
  return joinInSlices(pieces)
}

const isFirstHalf = (unit: number): boolean => (unit & 0xfc00) === 0xd800

/** Text that is encoded in one turn of the event loop, characters. */
const ENCODED_AT_ONCE = 262_144

/** Commands of more characters are encoded as bytes, which are sent without another copy. */
export const LARGE_COMMAND = 16_384

/** Whether a command is encoded in slices. */
export function isLargeCommand(args: readonly Argument[]): boolean {
  return args.reduce((sum, arg) => sum + arg.length + 1, 0) > LARGE_COMMAND
}

/** A command as the engine reads it, encoded in slices that yield to the event loop. */
export async function encodeInSlices(args: readonly Argument[]): Promise<Buffer> {
  const pieces: Buffer[] = []
  let text = `*${args.length}\r\n`
  for (const arg of args) {
    if (typeof arg === 'string') text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`
    else {
      pieces.push(Buffer.from(`${text}$${arg.length}\r\n`), arg)
      text = '\r\n'
    }
    if (text.length < ENCODED_AT_ONCE) continue
    pieces.push(Buffer.from(text))
    text = ''
    await yieldToEventLoop()
  }
  pieces.push(Buffer.from(text))
  return joinInSlices(pieces)
}
