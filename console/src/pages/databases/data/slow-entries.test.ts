import { expect, it } from 'vitest'
import { parseReplies } from '../../../lib/resp.js'
import { entryOf } from './slow-entries.js'

it('the console reads an entry of the slow log', () => {
  const words = ['KEYS', 'a "b"', ''].map((word) => `$${word.length}\r\n${word}\r\n`).join('')
  const entry = `*6\r\n:7\r\n:1764324000\r\n:12345\r\n*3\r\n${words}$9\r\n0.0.0.0:0\r\n$6\r\nworker\r\n`
  expect(parseReplies(new TextEncoder().encode(entry)).map(entryOf)).toEqual([
    { id: '7', atMs: 1_764_324_000_000, tookMs: 12.345, text: 'KEYS "a \\"b\\"" ""', client: 'worker' },
  ])
})
