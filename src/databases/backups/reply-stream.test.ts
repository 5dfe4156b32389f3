import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { type Reply, ReplyError, type ReplyLimits, ReplyRefused, ReplyStream } from './reply-stream.js'

const LIMITS: ReplyLimits = { depth: 3, elements: 100, replyBytes: 1000, valueBytes: 5000 }

/** A stream of the given bytes, in chunks of the given size. */
const streamOf = (text: string, chunkBytes = 1 << 16, limits: ReplyLimits = LIMITS) => {
  const bytes = Buffer.from(text, 'latin1')
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, i) =>
    bytes.subarray(i * chunkBytes, (i + 1) * chunkBytes),
  )
  return new ReplyStream(Readable.from(chunks), limits)
}
const plain = (reply: Reply): unknown =>
  Buffer.isBuffer(reply) ? reply.toString('latin1') : Array.isArray(reply) ? reply.map(plain) : reply

it.each([1, 2, 3, 7, 1 << 16])(
  'the reply stream reads every type of reply from chunks of %i bytes',
  async (chunkBytes) => {
    const stream = streamOf(
      '+OK\r\n-ERR no\r\n:-12\r\n$4\r\na\r\nb\r\n$-1\r\n*-1\r\n*2\r\n$1\r\n0\r\n*1\r\n$0\r\n\r\n',
      chunkBytes,
    )
    const replies: unknown[] = []
    for (let i = 0; i < 7; i++) replies.push(plain(await stream.reply()))
    expect(replies).toEqual(['OK', new ReplyError('ERR no'), -12, 'a\r\nb', null, null, ['0', ['']]])
    expect(stream.readBytes).toBe(61)
    await expect(stream.reply()).rejects.toThrow('closed')
  },
)

it.each([1, 5, 1 << 16])(
  'the reply stream streams a value in the chunks in which it arrives (%i bytes)',
  async (chunkBytes) => {
    const stream = streamOf(`$2000\r\n${'x'.repeat(2000)}\r\n$-1\r\n-LOADING\r\n`, chunkBytes)
    const seen: number[] = []
    let longest = 0
    const take = (piece: Buffer): void => {
      seen.push(piece.length)
      longest = Math.max(longest, piece.length)
    }
    expect(await stream.value((bytes) => seen.push(-bytes), take)).toBe(true)
    expect([seen[0], seen.slice(1).reduce((sum, bytes) => sum + bytes, 0)]).toEqual([-2000, 2000])
    expect(longest).toBeLessThanOrEqual(chunkBytes)
    expect(await stream.value(() => undefined, take)).toBe(false)
    expect(await stream.value(() => undefined, take)).toEqual(new ReplyError('LOADING'))
  },
)

it.each([
  ['nested arrays', '*1\r\n'.repeat(2_000_000), 'nested more than 3 deep'],
  ['a huge array', '*30000000\r\n'.repeat(60), '30000000 elements, where at most 100'],
  ['an array of 2^32 - 1', '*4294967295\r\n', '4294967295 elements'],
  ['more elements than a number holds', `*${'9'.repeat(400)}\r\n`, 'an invalid number'],
  ['many arrays that are small each', `*90\r\n${'*90\r\n'.repeat(90)}`, '90 elements, where at most 10'],
  ['a value of 4 GB', '$4294967296\r\n', '4294967296 bytes, where at most 1000'],
  ['values that are too long together', `*2\r\n$900\r\n${'x'.repeat(900)}\r\n$900\r\n`, 'at most 100 are taken'],
  ['an endless line', '+'.padEnd(100_000, 'x'), 'a line of more than 4096 bytes'],
  ['an endless number', ':'.padEnd(100_000, '1'), 'a line of more than 4096 bytes'],
  ['a negative length', '$-2\r\n', 'a length of -2'],
  ['a length that is none', '$1e3\r\n', 'an invalid number ("1e3")'],
  ['a value without its end', '$1\r\nabc\r\n', 'longer than its length says'],
  ['RESP3', '%1\r\n+a\r\n+b\r\n', '"%1"'],
  ['another protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n', '"HTTP/1.1 400 Bad Req"'],
  ['control characters', '\x1b[2J\r\n', '"?[2J"'],
  ['nothing', '\r\n', 'nothing'],
])('the reply stream refuses %s', async (_what, text, found) => {
  const refusal = await streamOf(text)
    .reply()
    .catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(ReplyRefused)
  expect(String(refusal)).toContain(found)
})

it('the reply stream refuses to stream a reply that is no value or is too long', async () => {
  for (const [text, found] of [
    [':1\r\n', 'a reply of type ":1"'],
    ['$5001\r\n', '5001 bytes, where at most 5000'],
  ] as const) {
    const value = streamOf(text).value(
      () => undefined,
      () => undefined,
    )
    await expect(value).rejects.toThrow(found)
  }
})
