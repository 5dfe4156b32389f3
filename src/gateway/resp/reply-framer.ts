import type { LentBytes } from './lent-memory.js'

/** Thrown when bytes of the engine are no reply: their connection cannot be trusted any more. */
export class ReplyFormatError extends Error {
  constructor(problem: string) {
    super(`the engine sent bytes that are not a reply: ${problem}`)
    this.name = 'ReplyFormatError'
  }
}

/** The part of a reply that the next byte belongs to. */
const AT_TYPE = 0
const IN_NUMBER = 1
const IN_TEXT = 2
const IN_PAYLOAD = 3

const LF = 10
const CR = 13
const MINUS = 45
const ZERO = 48
const NINE = 57
const MAX_NUMBER = 2 ** 32

/**
 * Finds the ends of replies in RESP2 and RESP3, without decoding or copying them. A chunk may end at any byte of a reply.
 *
 * Nested replies need no stack: an aggregate of n elements only adds n to the number of missing elements.
 */
export class ReplyFramer {
  /** Number of replies that ended in the last `scan`. */
  completed = 0
  /** Beginning of the reply that the end of the last `scan` has cut, if it began in that chunk. */
  replyStart = 0
  /** Declared length of the current reply if it is a bulk string, otherwise 0. */
  bulkBytes = 0
  #state = AT_TYPE
  #elementsLeft = 0
  /** Whether the current element is the reply itself, not an element inside it. */
  #isFirst = false
  #payloadLeft = 0
  #type = 0
  #number = 0
  #digits = 0
  #negative = false

  /** Whether the last byte was in the middle of a reply. */
  get midReply(): boolean {
    return this.#elementsLeft > 0
  }

  /**
   * Reads from `from` until `limit` replies have ended, the chunk ends, or an error follows a whole reply.
   * @returns the position after the last byte read; `completed` is the number of replies that ended
   * @throws ReplyFormatError
   */
  scan(chunk: LentBytes, from: number, limit: number): number {
    let position = from
    this.completed = 0
    if (this.#elementsLeft === 0) this.replyStart = from
    while (position < chunk.length) {
      position = this.#step(chunk, position)
      if (this.#elementsLeft > 0) continue
      this.replyStart = position
      this.bulkBytes = 0
      if (++this.completed === limit || chunk[position] === MINUS) return position
    }
    return position
  }

  #step(chunk: LentBytes, position: number): number {
    switch (this.#state) {
      case AT_TYPE:
        this.#beginElement(chunk[position] ?? 0)
        return position + 1
      case IN_NUMBER:
        return this.#readNumber(chunk, position)
      case IN_TEXT:
        return this.#skipText(chunk, position)
      default:
        return this.#skipPayload(chunk, position)
    }
  }

  #beginElement(type: number): void {
    this.#isFirst = this.#elementsLeft === 0
    if (this.#isFirst) this.#elementsLeft = 1
    this.#type = type
    this.#number = 0
    this.#digits = 0
    this.#negative = false
    this.#state = stateAfter(type)
  }

  #readNumber(chunk: LentBytes, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (byte === LF) {
        this.#endNumber()
        return at + 1
      }
      this.#readDigit(byte)
    }
    return chunk.length
  }

  #readDigit(byte: number): void {
    if (byte >= ZERO && byte <= NINE) {
      this.#number = this.#number * 10 + byte - ZERO
      this.#digits++
      if (this.#number > MAX_NUMBER) throw new ReplyFormatError('a length is too large')
    } else if (byte === MINUS && this.#digits === 0) {
      this.#negative = true
    } else if (byte !== CR) {
      throw new ReplyFormatError('a length is not a number')
    }
  }

  #endNumber(): void {
    if (this.#digits === 0) throw new ReplyFormatError('a length is missing')
    this.#state = AT_TYPE
    if (this.#negative) this.#elementsLeft--
    else if (isAggregate(this.#type)) this.#elementsLeft += addedElements(this.#type, this.#number)
    else {
      this.#payloadLeft = this.#number + 2
      this.#state = IN_PAYLOAD
      if (this.#isFirst) this.bulkBytes = this.#number
    }
  }

  #skipText(chunk: LentBytes, from: number): number {
    let at = from
    while (at < chunk.length && chunk[at] !== LF) at++
    if (at === chunk.length) return at
    this.#elementsLeft--
    this.#state = AT_TYPE
    return at + 1
  }

  #skipPayload(chunk: LentBytes, from: number): number {
    const available = chunk.length - from
    if (available < this.#payloadLeft) {
      this.#payloadLeft -= available
      return chunk.length
    }
    const end = from + this.#payloadLeft
    this.#elementsLeft--
    this.#state = AT_TYPE
    return end
  }
}

function stateAfter(type: number): number {
  switch (type) {
    case 0x24: // $ bulk string
    case 0x2a: // * array
    case 0x25: // % map
    case 0x7e: // ~ set
    case 0x3e: // > push
    case 0x7c: // | attribute
    case 0x21: // ! bulk error
    case 0x3d: // = verbatim string
      return IN_NUMBER
    case 0x2b: // + simple string
    case 0x2d: // - error
    case 0x3a: // : integer
    case 0x2c: // , double
    case 0x23: // # boolean
    case 0x5f: // _ null
    case 0x28: // ( big number
      return IN_TEXT
    default:
      throw new ReplyFormatError(`no reply begins with the byte ${type}`)
  }
}

function isAggregate(type: number): boolean {
  return type === 0x2a || type === 0x25 || type === 0x7e || type === 0x3e || type === 0x7c
}

/** By how much the missing elements change: an aggregate is one itself, an attribute only precedes one. */
function addedElements(type: number, count: number): number {
  if (type === 0x25) return 2 * count - 1
  if (type === 0x7c) return 2 * count
  return count - 1
}
