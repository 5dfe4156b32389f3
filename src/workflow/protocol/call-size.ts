import type { HeaderMap } from '../../queue/index.js'

/**
 * What the answer of a third party takes on its way back: an SDK sends it as a step, where it is text (a character for
 * each byte) in JSON in JSON. Quotes make it four times as large, and control characters seven times.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Control characters with a short escape, such as `\n`: one backslash in the inner JSON, two in the outer. */
const SHORT = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d])
/** The step around the answer, its names included. */
const WRAPPING_BYTES = 4 * 1024

const COSTS = Uint8Array.from({ length: 256 }, (_, byte) => costOf(byte))

function costOf(byte: number): number {
  if (byte === QUOTE || byte === BACKSLASH) return 4
  if (SHORT.has(byte)) return 3
  if (byte < 0x20) return 7
  return byte < 0x80 ? 1 : 2
}

/** Bytes of the step that an SDK makes of an answer. */
export function stepBytesOf(body: Uint8Array, headers: HeaderMap): number {
  let bytes = WRAPPING_BYTES + Buffer.byteLength(JSON.stringify(JSON.stringify(headers)))
  for (const byte of body) bytes += COSTS[byte] ?? 0
  return bytes
}
