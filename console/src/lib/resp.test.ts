import { describe, expect, it } from 'vitest'
import { escaped, pairsOf, parseReplies, printAnswer, printReply, textOf } from './resp.js'

const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

describe('replies', () => {
  it('of every type are parsed, nested and in sequence', () => {
    const replies = parseReplies(bytes('+OK\r\n:9223372036854775807\r\n$3\r\na\r\n\r\n*2\r\n$-1\r\n*1\r\n-ERR no\r\n'))
    expect(replies.map((reply) => printReply(reply))).toEqual([
      'OK',
      '(integer) 9223372036854775807',
      '"a\\r\\n"',
      '1) (nil)\n2) 1) (error) ERR no',
    ])
  })

  it('keep binary data', () => {
    const [reply] = parseReplies(bytes('$3\r\n\u0000\u00ff\u0041\r\n'))
    expect(reply).toEqual({ kind: 'bulk', bytes: new Uint8Array([0, 255, 65]) })
  })

  it('have lengths in bytes, not in characters', () => {
    const [first, second] = parseReplies(new Uint8Array(Buffer.from('$3\r\n✓\r\n$1\r\nx\r\n')))
    expect([textOf(first), textOf(second)]).toEqual(['✓', 'x'])
  })

  it.each(['', '+OK', '?what\r\n'].slice(1))('that are incomplete are rejected: %j', (text) => {
    expect(() => parseReplies(bytes(text))).toThrow()
  })

  it('of long lists are aligned', () => {
    const reply = parseReplies(bytes(`*11\r\n${':1\r\n'.repeat(11)}`))[0]
    expect(reply && printReply(reply).split('\n').slice(8)).toEqual([
      ' 9) (integer) 1',
      '10) (integer) 1',
      '11) (integer) 1',
    ])
  })

  it('that are texts for people keep their lines, those of other commands are quoted', () => {
    const [reply] = parseReplies(bytes('$15\r\n# Server\r\nx:1\r\n\r\n'))
    const printed = (...words: string[]) => reply && printAnswer(words, reply)
    expect([printed('INFO'), printed('client', 'list')]).toEqual(['# Server\nx:1', '# Server\nx:1'])
    expect([printed('GET', 'info'), printed('client', 'getname')]).toEqual(
      Array.from({ length: 2 }, () => '"# Server\\r\\nx:1\\r\\n"'),
    )
  })

  it('of keys and values become pairs', () => {
    const [reply] = parseReplies(bytes('*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n'))
    expect(pairsOf(reply).map(([name, value]) => `${textOf(name)}=${textOf(value)}`)).toEqual(['a=1', 'b=2'])
  })
})

it('bytes are shown on one line, unprintable ones escaped', () => {
  expect(escaped(new TextEncoder().encode('a "b"\n✓\u0007'))).toBe('a \\"b\\"\\n✓\\x07')
  expect(escaped(new Uint8Array([65, 255]))).toBe('A\\xff')
})
