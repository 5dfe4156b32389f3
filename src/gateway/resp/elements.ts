import { isTurnSpent, yieldToEventLoop } from '../../base/index.js'
import { ReplyFramer } from './reply-framer.js'

const STAR = 0x2a
const CR = 13

/** The number of elements of an array; undefined when the reply is no array. */
export function arrayLength(reply: Buffer): number | undefined {
  const count = Number(reply.toString('latin1', 1, reply.indexOf(CR)))
  return reply[0] !== STAR || count < 0 ? undefined : count
}

/** The elements of an array, each as an encoded reply; undefined when the reply is no array. */
export function elementsOf(reply: Buffer): readonly Buffer[] | undefined {
  const count = arrayLength(reply)
  if (count === undefined) return undefined
  const framer = new ReplyFramer()
  const elements: Buffer[] = []
  for (let at = reply.indexOf(CR) + 2; elements.length < count; ) {
    const end = framer.scan(reply, at, 1)
    elements.push(reply.subarray(at, end))
    at = end
  }
  return elements
}

/** Bytes that are searched at once for the ends of elements. */
const SEARCHED_AT_ONCE = 262_144

/**
 * Reads the elements of an array in order, in slices that yield to the event loop. There may be millions of elements, so
 * consecutive elements are returned as one buffer.
 */
export class ElementReader {
  readonly #reply: Buffer
  readonly #framer = new ReplyFramer()
  #at: number

  constructor(reply: Buffer) {
    this.#reply = reply
    this.#at = reply.indexOf(CR) + 2
  }

  /** The next `count` elements, or those that are left. */
  async take(count: number): Promise<Buffer> {
    const start = this.#at
    for (let left = count; left > 0 && this.#at < this.#reply.length; left -= this.#framer.completed) {
      this.#at = this.#framer.scan(this.#reply.subarray(0, this.#at + SEARCHED_AT_ONCE), this.#at, left)
      if (isTurnSpent()) await yieldToEventLoop()
    }
    return this.#reply.subarray(start, this.#at)
  }
}
