import { expect, it } from 'vitest'
import { MAX_COMMAND_LENGTH, Profile } from './monitor-lines.js'

const line = (text: string, source = '127.0.0.1:5000') => `data: 1764324000.123456 [0 ${source}] ${text}\n\n`
const bytes = (text: string) => new TextEncoder().encode(text)

it('commands are read wherever the stream is cut, and other lines are ignored', () => {
  const profile = new Profile('', 10)
  const stream = `data: "OK"\n\n:\n\n${line('"SET" "a b" "\\"x\\""')}${line('"get" "k"', 'lua')}`
  for (const byte of bytes(stream)) profile.take(new Uint8Array([byte]))
  expect(profile.commands()).toEqual([
    { id: 1, atMs: 1_764_324_000_123, source: '127.0.0.1:5000', text: '"SET" "a b" "\\"x\\""' },
    { id: 2, atMs: 1_764_324_000_123, source: 'lua', text: '"get" "k"' },
  ])
})

it('the newest matching commands are kept, and dropped ones are counted', () => {
  const profile = new Profile(' USER: ', 3)
  for (let i = 0; i < 20; i++) profile.take(bytes(line(`"GET" "${i % 2 ? 'user' : 'cart'}:${i}"`)))
  expect(profile.commands().map(({ text }) => text)).toEqual(['"GET" "user:15"', '"GET" "user:17"', '"GET" "user:19"'])
  expect(profile.counts).toEqual({ seen: 20, matched: 10, dropped: 7, cut: 0 })
})

it('a long command shows its beginning, and only a part of it is held', () => {
  const profile = new Profile('', 3)
  for (let i = 0; i < 100; i++) profile.take(bytes(i === 0 ? line(`"SET" "k" "`).trimEnd() : 'x'.repeat(10_000)))
  profile.take(bytes(`"\n\n${line('"PING"')}`))
  expect(profile.commands().map(({ text }) => text.length)).toEqual([MAX_COMMAND_LENGTH, 6])
  expect(profile.counts.cut).toBe(1)
})
