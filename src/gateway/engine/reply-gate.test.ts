import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { unitMs, workMs } from '../../../test/support/index.js'
import { type LentBytes, newBlock } from '../resp/lent-memory.js'
import { ReplyFormatError } from '../resp/reply-framer.js'
import { HeldMemory } from './held-memory.js'
import { PendingReplies } from './pending-replies.js'
import { NO_REPLY_LIMITS, ReplyGate } from './reply-gate.js'
import type { ReplySink } from './reply-sink.js'

const LIMIT_BYTES = 40

/** Records what it gets. */
class Client implements ReplySink {
  pieces: string[] = []
  completed = 0

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.pieces.push(chunk.toString('latin1', start, end))
    this.completed += completed
  }

  fail(): void {
    throw new Error('nothing fails here')
  }
}

const heldMemory = (): HeldMemory =>
  new HeldMemory('db', { grow: () => undefined, remove: () => undefined }, () => undefined)
/** Every chunk is read into the same block. */
const BLOCK = newBlock('common', 8_192)
const lent = (chunk: Buffer): LentBytes => BLOCK.fill('~').subarray(0, chunk.copy(BLOCK))

const bulk = (length: number): string => `$${length}\r\n${'x'.repeat(length)}\r\n`
const array = (length: number): string => `*${length}\r\n${bulk(2).repeat(length)}`
const replyOf = fc.oneof(
  fc.constantFrom('+OK\r\n', ':12\r\n', '$-1\r\n', '-ERR no\r\n', '*0\r\n'),
  fc.integer({ min: 0, max: 60 }).map(bulk),
  fc.integer({ min: 1, max: 12 }).map(array),
)

/** Whether a reply is longer than the limit; a bulk string that is cut is measured by its payload. */
function mayPass(reply: string): 'always' | 'never' | 'whole only' {
  const payloadBytes = reply.startsWith('$') ? reply.length - reply.indexOf('\n') - 3 : reply.length
  if (reply.length <= LIMIT_BYTES || reply.startsWith('-')) return 'always'
  return payloadBytes > LIMIT_BYTES ? 'never' : 'whole only'
}

function chunksOf(text: string, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b)
  return places.slice(1).map((to, i) => Buffer.from(text.slice(places[i], to), 'latin1'))
}

describe('replies of an engine', () => {
  it('take linear time when one is a very long error', () => {
    const pending = new PendingReplies({ error: () => undefined })
    const gate = new ReplyGate(pending, NO_REPLY_LIMITS)
    const client = new Client()
    pending.expect(client, 2)
    const text = `-ERR ${'x'.repeat(600)}`
    const pieces = [text, ...new Array<string>(400).fill('x'.repeat(65_536)), '\r\n+OK\r\n']
    const push = (): void => {
      for (const piece of pieces) gate.push(Buffer.from(piece))
    }
    expect(workMs(push) / unitMs()).toBeLessThan(100)
    expect(client.completed).toBe(2)
    expect(client.pieces.join('') === pieces.join('')).toBe(true)
  })

  it('reach their sinks, wherever they are cut into chunks and whichever are too long', () => {
    const clients = fc.array(fc.array(replyOf, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(clients, fc.array(fc.nat(), { maxLength: 12 }), (expected, cuts) => {
        const pending = new PendingReplies({ error: () => undefined })
        const held = heldMemory()
        const gate = new ReplyGate(pending, { maxReplyBytes: LIMIT_BYTES, reword: () => undefined, held })
        const sinks = expected.map((replies) => {
          const client = new Client()
          pending.expect(client, replies.length)
          return client
        })
        for (const chunk of chunksOf(expected.flat().join(''), cuts)) {
          gate.push(lent(chunk))
          expect(held.heldBytes).toBeLessThanOrEqual(LIMIT_BYTES)
        }
        expect([pending.isEmpty, held.heldBytes]).toEqual([true, 0])
        for (const [i, client] of sinks.entries()) expectReplies(client, expected[i] ?? [])
      }),
      { numRuns: 2000 },
    )
  })

  it('are not held any more once they are too long', () => {
    const pending = new PendingReplies({ error: () => undefined })
    const held = heldMemory()
    const gate = new ReplyGate(pending, { maxReplyBytes: LIMIT_BYTES, reword: () => undefined, held })
    const client = new Client()
    pending.expect(client, 1)
    const [first = '', second = '', rest = ''] = [array(12).slice(0, 30), array(12).slice(30, 60), array(12).slice(60)]
    gate.push(Buffer.from(first))
    expect(held.heldBytes).toBe(30)
    gate.push(Buffer.from(second))
    expect(held.heldBytes).toBe(0)
    gate.push(Buffer.from(rest))
    expect(client.pieces.join('')).toMatch(/^-ERR max request size exceeded. Limit: 40 bytes, Actual: 101 bytes\r\n$/)
  })

  it('are refused when nobody expects them', () => {
    const gate = new ReplyGate(new PendingReplies({ error: () => undefined }), NO_REPLY_LIMITS)
    expect(() => gate.push(Buffer.from('+OK\r\n'))).toThrow(ReplyFormatError)
  })

  it('get another wording only where they are errors, not within a value', () => {
    const pending = new PendingReplies({ error: () => undefined })
    const gate = new ReplyGate(pending, { ...NO_REPLY_LIMITS, reword: () => Buffer.from('-OTHER\r\n') })
    const client = new Client()
    pending.expect(client, 2)
    for (const piece of ['$11\r\nv\r\n', '-ERR a\r\n', '\r\n-ERR', ' b\r\n']) gate.push(Buffer.from(piece))
    expect(client.pieces.join('')).toBe('$11\r\nv\r\n-ERR a\r\n\r\n-OTHER\r\n')
  })

  it.each([
    ['whole', []],
    ['cut', [20]],
    ['cut early and late', [3, 120]],
  ])('are limited in length, but not push messages, %s', (_, cuts) => {
    const message = `>2\r\n${bulk(7)}${bulk(100)}`
    let received = ''
    const take = (chunk: Buffer, start: number, end: number): void => {
      received += chunk.toString('latin1', start, end)
    }
    const receiver = {
      isEmpty: false,
      headCount: Number.POSITIVE_INFINITY,
      deliver: take,
      deliverHeld: () => undefined,
    }
    const gate = new ReplyGate(receiver, { maxReplyBytes: LIMIT_BYTES, reword: () => undefined })
    for (const chunk of chunksOf(message, cuts)) gate.push(chunk)
    expect(received).toBe(message)
  })

  it('arrive in one piece for each client that a chunk has replies for', () => {
    const pending = new PendingReplies({ error: () => undefined })
    const gate = new ReplyGate(pending, NO_REPLY_LIMITS)
    const [first, second] = [new Client(), new Client()]
    pending.expect(first, 3)
    pending.expect(second, 2)
    const text = bulk(20).repeat(5)
    const replyBytes = bulk(20).length
    const cut = replyBytes + 10
    for (const chunk of chunksOf(text, [cut, 4 * replyBytes + 5])) gate.push(chunk)
    expect(first.pieces.map((piece) => piece.length)).toEqual([cut, 3 * replyBytes - cut])
    expect(second.pieces.map((piece) => piece.length)).toEqual([replyBytes + 5, replyBytes - 5])
    expect([first.completed, second.completed]).toEqual([3, 2])
  })
})

/** Checks that each reply arrived in order, as it was sent or as the error that replaces it. */
function expectReplies(client: Client, replies: readonly string[]): void {
  let rest = client.pieces.join('')
  expect(client.completed).toBe(replies.length)
  for (const reply of replies) {
    const verdict = mayPass(reply)
    const refusal = /^-ERR max request size exceeded[^\n]*\n/.exec(rest)?.[0]
    if (verdict !== 'never' && rest.startsWith(reply)) rest = rest.slice(reply.length)
    else if (verdict !== 'always' && refusal) rest = rest.slice(refusal.length)
    else expect(rest.slice(0, 200)).toBe(reply)
  }
  expect(rest).toBe('')
}
