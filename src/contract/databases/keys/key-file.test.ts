import { expect, it } from 'vitest'
import { endLine, headerLine, keyLine, linesOf, readKeyLine } from './key-file.js'
import { bytesOfKeyName, isBinaryName, keyNameOf, pathSegment } from './key-name.js'
import { all, base64 } from './testing/key-samples.js'

it.each([
  ['text', Buffer.from('user:1')],
  ['an empty name', Buffer.alloc(0)],
  ['a name that begins with a byte order mark', Buffer.from('\ufeffuser')],
  ['bytes that are no UTF-8', Buffer.from([0xff, 0x00, 0x80, 0x41])],
  ['the bytes of a lone surrogate', Buffer.from([0xed, 0xb0, 0x80, 0x41])],
])('a name keeps its bytes: %s', (_what, bytes) => {
  const name = keyNameOf(bytes)
  expect(Buffer.from(bytesOfKeyName(name))).toEqual(bytes)
  const stored = { name, type: 'string', expiresAtMs: 5, dump: 'AAE=' }
  expect(readKeyLine(keyLine(stored, base64), base64)).toEqual({ kind: 'key', key: stored })
})

it('every name can be put into a path', () => {
  const binary = keyNameOf(new Uint8Array([0xff, 0x2f]))
  expect(isBinaryName(binary)).toBe(true)
  expect([pathSegment(binary), pathSegment('a/ü?')]).toEqual(['%ff%2f', 'a%2F%C3%BC%3F'])
})

it('the first and the last line of a file are read back', () => {
  expect(readKeyLine(headerLine(0), base64)).toEqual({ kind: 'header', version: 1 })
  expect(readKeyLine(endLine(7), base64)).toEqual({ kind: 'end', keys: 7 })
  expect(readKeyLine('  ', base64)).toEqual({ kind: 'blank' })
})

it.each([
  'no json',
  '[]',
  'null',
  '{"key":1,"dump":"AAE="}',
  '{"key":"\\udc00abc","dump":"AAE="}',
  '{"key":"a\\ud800","dump":"AAE="}',
  '{"key64":"%","dump":"AAE="}',
  '{"key":"a","dump":""}',
  '{"key":"a","dump":"AA"}',
  '{"key":"a","dump":"AAE=","expiresAtMs":-1}',
  '{"key":"a","dump":"AAE=","expiresAtMs":"5"}',
])('%s is no key', (text) => {
  expect(readKeyLine(text, base64)).toMatchObject({ kind: 'broken' })
})

it('bytes are split into lines wherever they are cut, and lines that are too long are dropped', async () => {
  const whole = Buffer.from('ab\nü\nlonger than ten\n\nend')
  const chunks = [1, 4, 5, 12, whole.length].map((end, index, ends) => whole.subarray(ends[index - 1] ?? 0, end))
  const lines = await all(linesOf(chunks, 10))
  expect(lines).toEqual([
    { number: 1, text: 'ab' },
    { number: 2, text: 'ü' },
    { number: 3, text: undefined },
    { number: 4, text: '' },
    { number: 5, text: 'end' },
  ])
})
