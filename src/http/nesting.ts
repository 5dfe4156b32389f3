const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENING: ReadonlySet<number | undefined> = new Set([0x5b, 0x7b])
const CLOSING: ReadonlySet<number | undefined> = new Set([0x5d, 0x7d])

/**
 * Whether lists and objects of a JSON text stand in each other more than `most` levels deep. The parser takes any
 * depth, but whatever walks the value afterwards does not. Texts are skipped; the JSON need not be valid.
 */
export function nestsDeeperThan(json: Uint8Array, most: number): boolean {
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === QUOTE) at = endOfText(json, at)
    else if (OPENING.has(byte)) {
      if (++depth > most) return true
    } else if (CLOSING.has(byte)) depth--
  }
  return false
}

/** The place of the quote that ends the text which begins at `start`. */
function endOfText(json: Uint8Array, start: number): number {
  for (let quote = json.indexOf(QUOTE, start + 1); quote >= 0; quote = json.indexOf(QUOTE, quote + 1)) {
    let backslashes = 0
    while (json[quote - 1 - backslashes] === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return quote
  }
  return json.length
}
