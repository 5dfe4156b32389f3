import { charactersIn, isObject } from '../base/index.js'

/** Characters that are serialized in one go: a few milliseconds of work, even if each needs an escape. */
const PIECE_CHARACTERS = 65_536
/** A high surrogate. Without its low surrogate it would be serialized as an escape, so the two stay in one piece. */
const FIRST_HALF = /[\uD800-\uDBFF]$/

/**
 * The JSON of a value, with texts of megabytes cut into pieces, so that the caller can yield to the event loop between two
 * pieces. In one go, 16 MB of control characters take a second.
 */
export function* jsonPieces(value: unknown): Generator<string> {
  if (charactersIn(value) <= PIECE_CHARACTERS) yield JSON.stringify(value) ?? 'null'
  else if (typeof value === 'string') yield* piecesOfText(value)
  else if (Array.isArray(value)) yield* piecesOfList(value)
  else if (isObject(value)) yield* piecesOfObject(value)
}

function* piecesOfText(text: string): Generator<string> {
  yield '"'
  for (let from = 0; from < text.length; ) {
    const most = text.slice(from, from + PIECE_CHARACTERS)
    const piece = FIRST_HALF.test(most) && most.length > 1 ? most.slice(0, -1) : most
    yield JSON.stringify(piece).slice(1, -1)
    from += piece.length
  }
  yield '"'
}

function* piecesOfList(list: readonly unknown[]): Generator<string> {
  for (const [index, item] of list.entries()) {
    yield index === 0 ? '[' : ','
    yield* jsonPieces(item)
  }
  yield ']'
}

function* piecesOfObject(object: Readonly<Record<string, unknown>>): Generator<string> {
  let before = '{'
  for (const [name, member] of Object.entries(object)) {
    if (member === undefined) continue
    yield `${before}${JSON.stringify(name)}:`
    yield* jsonPieces(member)
    before = ','
  }
  yield '}'
}
