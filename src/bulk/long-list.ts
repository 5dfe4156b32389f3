import { isObject, joinBytes } from '../base/index.js'
import { parseJson } from '../http/index.js'

/** Shorter requests are parsed in a millisecond. */
const LONG_BYTES = 64 * 1_024
/** A piece is about so long: some thousand ids. */
const PIECE_BYTES = 64 * 1_024
/** So much without an end of an element is no list of ids. */
const MOST_UNCUT_BYTES = 4 * PIECE_BYTES

const NAME = 'workflowRunIds'
/** The end of an element that is not the last. */
const SEPARATOR = Buffer.from('",')
const BACKSLASH = 0x5c
const OPENING = 0x5b
const CLOSING = 0x5d

/** Where the list stands: in the request itself, or in its member `selector`. */
export type Place = 'request' | 'selector'

/**
 * Which part of the request is arriving: what stands before the list, the list, or what follows it; or it is nothing
 * to be cut, whatever follows.
 */
type State = 'head' | 'list' | 'tail' | 'odd'

/**
 * Cuts a long list of ids out of the JSON text of a request while that arrives, without parsing it: to parse hundreds of
 * thousands of texts at a stretch would hold everybody up for as long as that takes. The text is only searched for a few
 * bytes here. What is cut may be wrong for odd texts, such as ids with brackets; then it does not parse, and the parser
 * of the pieces says so.
 */
export class ListCutter {
  #state: State = 'head'
  /** What has come of the present part, and of the list since the last piece. */
  #arrived: Uint8Array[] = []
  #bytes = 0
  #head = new Uint8Array()

  /**
   * Takes what has come.
   * @returns pieces that are whole now: some elements of the list each, with the commas between them.
   */
  take(bytes: Uint8Array): readonly Uint8Array[] {
    if (this.#state === 'odd') return []
    this.#keep(bytes)
    // Without backslashes, every quote begins or ends a text.
    if (bytes.includes(BACKSLASH)) this.#state = 'odd'
    if (this.#state === 'head' && this.#bytes >= LONG_BYTES) this.#findList()
    if (this.#state !== 'list') return []
    if (this.#arrived.at(-1)?.includes(CLOSING)) return [this.#cutLast()]
    return this.#bytes >= PIECE_BYTES ? this.#cut() : []
  }

  #keep(bytes: Uint8Array): void {
    this.#arrived.push(bytes)
    this.#bytes += bytes.length
  }

  /** All that is kept, in memory of its own. */
  #release(): Uint8Array<ArrayBuffer> {
    const all = joinBytes(this.#arrived, this.#bytes)
    this.#arrived = []
    this.#bytes = 0
    return all
  }

  #findList(): void {
    const text = this.#release()
    const name = asBuffer(text).indexOf(`"${NAME}"`)
    const start = name < 0 ? 0 : text.indexOf(OPENING, name) + 1
    this.#state = start > 0 ? 'list' : 'odd'
    this.#head = text.slice(0, start)
    this.#keep(text.subarray(start))
  }

  #cutLast(): Uint8Array {
    const text = this.#release()
    const end = text.indexOf(CLOSING)
    this.#state = 'tail'
    this.#keep(text.subarray(end))
    return text.slice(0, end)
  }

  #cut(): Uint8Array[] {
    const text = this.#release()
    const cut = asBuffer(text).lastIndexOf(SEPARATOR)
    if (cut < 0) {
      if (text.length > MOST_UNCUT_BYTES) this.#state = 'odd'
      this.#keep(text)
      return []
    }
    // The comma itself is left out; what follows it is short, and crosses to the store with the piece.
    this.#keep(text.slice(cut + SEPARATOR.length))
    return [text.subarray(0, cut + 1)]
  }

  /**
   * The request with an empty list in place of what was cut, once all of it has come; `undefined` when it is short, or is
   * not quite as plain as usual: then the pieces mean nothing.
   */
  rest(place: Place): object | undefined {
    if (this.#state !== 'tail') return undefined
    const tail = this.#release()
    if (asBuffer(tail).includes(NAME)) return undefined
    try {
      return restOf(parseJson(joinBytes([this.#head, tail], this.#head.length + tail.length)), place)
    } catch {
      return undefined
    }
  }
}

/** That the list is empty where it stood shows that it was the value of the member. */
function restOf(rest: unknown, place: Place): object | undefined {
  if (!isObject(rest)) return undefined
  const holder = place === 'request' ? rest : rest.selector
  return isObject(holder) && isEmptyList(holder[NAME]) ? rest : undefined
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
