import { isObject, othersFirst } from '../base/index.js'
import { parseJson } from '../http/index.js'

/**
 * Cutting a long list of ids out of a JSON text without parsing it: to parse hundreds of thousands of texts at a
 * stretch would hold everybody up for as long as that takes. The text is only searched for a few bytes here. What is
 * cut may be wrong for odd texts, such as ids with brackets; then it does not parse, and the parser of the pieces says
 * so.
 */

/** A request of which the list of ids was cut out. */
export interface CutRequest {
  /** The request with an empty list in its place. */
  readonly rest: object
  /** Some elements of the list each, with the commas between them. */
  readonly pieces: readonly Uint8Array[]
}

/** Shorter texts are parsed in a millisecond. */
const LONG_BYTES = 64 * 1_024
/** A piece is about so long: some thousand ids. */
const PIECE_BYTES = 96 * 1_024

const NAME = 'workflowRunIds'
/** The end of an element that is not the last. */
const SEPARATOR = Buffer.from('",')

/** Where the list stands: in the request itself, or in its member `selector`. */
export type Place = 'request' | 'selector'

/**
 * Cuts the list of ids out of a long request; `undefined` when the request is short, or is not quite as plain as usual.
 * To go through tens of megabytes takes some milliseconds, and others have waited for their arrival already.
 */
export async function cutLongList(json: Uint8Array, place: Place): Promise<CutRequest | undefined> {
  if (json.length < LONG_BYTES) return undefined
  await othersFirst()
  const text = Buffer.from(json.buffer, json.byteOffset, json.length)
  const bounds = boundsOf(text)
  const rest = bounds && restOf(text, bounds, place)
  if (!rest) return undefined
  await othersFirst()
  return { rest, pieces: piecesOf(text.subarray(bounds.start, bounds.end)) }
}

interface ListBounds {
  /** The place after the opening bracket, and that of the closing one. */
  readonly start: number
  readonly end: number
}

/** Without backslashes, every quote begins or ends a text. */
function boundsOf(text: Buffer): ListBounds | undefined {
  const name = text.indexOf(`"${NAME}"`)
  if (name < 0 || text.includes('\\') || text.indexOf(NAME, name + NAME.length) >= 0) return undefined
  const start = text.indexOf('[', name) + 1
  const end = text.indexOf(']', start)
  return start > 0 && end > 0 ? { start, end } : undefined
}

/** That the list is empty where it stood shows that it was the value of the member. */
function restOf(text: Buffer, { start, end }: ListBounds, place: Place): object | undefined {
  try {
    const rest = parseJson(Buffer.concat([text.subarray(0, start), text.subarray(end)]))
    if (!isObject(rest)) return undefined
    const holder = place === 'request' ? rest : rest.selector
    return isObject(holder) && isEmptyList(holder[NAME]) ? rest : undefined
  } catch {
    return undefined
  }
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** Cuts behind elements; the comma itself is left out. */
function piecesOf(list: Buffer): Uint8Array[] {
  const pieces: Uint8Array[] = []
  let from = 0
  while (list.length - from > PIECE_BYTES) {
    const cut = list.indexOf(SEPARATOR, from + PIECE_BYTES)
    if (cut < 0) break
    pieces.push(list.subarray(from, cut + 1))
    from = cut + SEPARATOR.length
  }
  return [...pieces, list.subarray(from)]
}
