import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplyFormatError, ReplyFramer } from './reply-framer.js'

/** Any reply of either protocol version, as the bytes of the engine. */
const { reply } = fc.letrec<{ reply: string; scalar: string; aggregate: string }>((tie) => ({
  reply: fc.oneof({ maxDepth: 4 }, tie('scalar'), tie('aggregate')),
  scalar: fc.oneof(
    fc.constantFrom(
      '+OK\r\n',
      '-ERR no\r\n',
      ':-42\r\n',
      '_\r\n',
      '#t\r\n',
      ',1.5\r\n',
      '(123\r\n',
      '$-1\r\n',
      '*-1\r\n',
    ),
    fc
      .tuple(fc.constantFrom('$', '=', '!'), fc.stringMatching(/^[\r\n$*+a-z]{0,20}$/))
      .map(([type, text]) => `${type}${text.length}\r\n${text}\r\n`),
  ),
  aggregate: fc.oneof(
    fc
      .tuple(fc.constantFrom('*', '~', '>'), fc.array(tie('reply'), { maxLength: 4 }))
      .map(([type, items]) => `${type}${items.length}\r\n${items.join('')}`),
    fc
      .array(fc.tuple(tie('reply'), tie('reply')), { maxLength: 3 })
      .map((pairs) => `%${pairs.length}\r\n${pairs.flat().join('')}`),
    fc.tuple(tie('scalar'), tie('scalar'), tie('reply')).map(([key, value, rest]) => `|1\r\n${key}${value}${rest}`),
  ),
}))

/** The ends of replies when the bytes arrive in pieces of these sizes. */
function ends(bytes: Buffer, sizes: readonly number[]): number[] {
  const framer = new ReplyFramer()
  const found: number[] = []
  let offset = 0
  for (let i = 0; offset < bytes.length; i++) {
    const piece = bytes.subarray(offset, offset + (sizes[i % sizes.length] ?? 1))
    for (let at = 0; at < piece.length; ) {
      at = framer.scan(piece, at, 1)
      if (framer.completed === 1) found.push(offset + at)
    }
    offset += piece.length
  }
  expect(framer.midReply).toBe(found.at(-1) !== bytes.length)
  return found
}

describe('the reply framer', () => {
  it('finds the end of every reply, wherever the bytes are cut', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: 6 }), sizes, (replies, cuts) => {
        let end = 0
        const wanted = replies.map((text) => (end += text.length))
        expect(ends(Buffer.from(replies.join('')), cuts)).toEqual(wanted)
      }),
    )
  })

  it('stops after the given number of replies', () => {
    const framer = new ReplyFramer()
    const bytes = Buffer.from('+a\r\n+b\r\n+c\r\n')
    expect(framer.scan(bytes, 0, 2)).toBe(8)
    expect(framer.completed).toBe(2)
    expect(framer.scan(bytes, 8, 2)).toBe(12)
    expect(framer.completed).toBe(1)
  })

  it.each(['?\r\n', '$x\r\n', '$\r\n', '*99999999999\r\n', '$1-\r\n'])('refuses %j', (text) => {
    expect(() => new ReplyFramer().scan(Buffer.from(text), 0, 1)).toThrow(ReplyFormatError)
  })

  it('throws nothing else, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          new ReplyFramer().scan(Buffer.from(bytes), 0, 100)
        } catch (error) {
          expect(error).toBeInstanceOf(ReplyFormatError)
        }
      }),
      { numRuns: 500 },
    )
  })
})
