import { describe, expect, it } from 'vitest'
import { bytesOfBase64, hexDump, payloadOfBase64, payloadOfBytes, payloadOfText } from './payload.js'

describe('a payload', () => {
  it.each([
    ['', { kind: 'empty' }],
    ['hello', { kind: 'text', text: 'hello' }],
    ['12', { kind: 'text', text: '12' }],
    ['{"a":1}', { kind: 'json', text: '{"a":1}', pretty: '{\n  "a": 1\n}' }],
    ['[9007199254740993]', { kind: 'json', text: '[9007199254740993]', pretty: '[\n  9007199254740993\n]' }],
    ['{"a":', { kind: 'text', text: '{"a":' }],
    ['a\u0000b', { kind: 'binary', bytes: new Uint8Array([97, 0, 98]) }],
  ])('%j is sorted out', (text, payload) => {
    expect(payloadOfText(text)).toEqual(payload)
  })

  it('of bytes is text only when it is valid UTF-8', () => {
    expect(payloadOfBytes(new Uint8Array([0xff, 0x41])).kind).toBe('binary')
    expect(payloadOfBytes(new Uint8Array(Buffer.from('✓')))).toEqual({ kind: 'text', text: '✓' })
    expect(payloadOfBytes(new Uint8Array(Buffer.from('\ufeffa')))).toEqual({ kind: 'text', text: '\ufeffa' })
  })

  it('of base64 is decoded', () => {
    expect(payloadOfBase64(Buffer.from('{}').toString('base64')).kind).toBe('json')
    expect([...bytesOfBase64('AP8=')]).toEqual([0, 255])
  })
})

it('a hex dump has offsets and the printable characters', () => {
  const dump = hexDump(new Uint8Array([...Array(16).keys(), 65]))
  expect(dump).toBe(
    `000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................\n000010  41${' '.repeat(45)}  A`,
  )
})
