import { describe, expect, it } from 'vitest'
import { KeptBody, SharedBytes } from './kept-body.js'

const bytes = (length: number, fill = 7): Buffer => Buffer.alloc(length, fill)

function kept(status: number, chunks: readonly Buffer[], shared = new SharedBytes(1_000)) {
  const body = new KeptBody({ keepBytes: 100, keepFailingBytes: 500 }, shared)
  body.begin(status)
  for (const chunk of chunks) body.add(chunk)
  return { body, shared, finished: body.finish() }
}

describe('the kept part of a response', () => {
  it.each([
    ['nothing', 200, [], 0, false],
    ['a response within the limit', 200, [bytes(60), bytes(40)], 100, false],
    ['the beginning of a larger one', 200, [bytes(60), bytes(50)], 100, true],
    ['a failing response within its own limit', 500, [bytes(60), bytes(440)], 500, false],
    ['the beginning of a failing one that is larger', 500, [bytes(60), bytes(440), bytes(1), bytes(90)], 100, true],
    ['a redirect like a failing response', 302, [bytes(200)], 200, false],
  ])('%s', (_what, status, chunks, length, truncated) => {
    const { finished } = kept(status, chunks)
    expect([finished.body.byteLength, finished.truncated]).toEqual([length, truncated])
    expect(finished.body.every((byte) => byte === 7)).toBe(true)
    // A view would move the whole buffer of its connection to another thread.
    expect(finished.body.buffer.byteLength).toBe(length)
  })

  it('keeps the order of bytes, however they are chunked', () => {
    const whole = Buffer.from(Array.from({ length: 40_000 }, (_, index) => index % 251))
    const cuts = [
      0,
      1,
      2,
      3,
      5_000,
      5_001,
      5_002,
      9_000,
      ...Array.from({ length: 31_000 }, (_, index) => 9_001 + index),
    ]
    const body = new KeptBody({ keepBytes: 50_000 }, new SharedBytes(0))
    body.begin(200)
    for (const [index, from] of cuts.entries()) body.add(whole.subarray(from, cuts[index + 1]))
    expect(Buffer.from(body.finish().body).equals(whole)).toBe(true)
  })

  it('takes shared memory for bytes beyond keepBytes, and gives it back once', () => {
    const { body, shared } = kept(500, [bytes(300)])
    expect(shared.freeBytes).toBe(800)
    body.release()
    body.release()
    expect(shared.freeBytes).toBe(1_000)
  })

  it('is cut to keepBytes when no shared memory is free, and then takes none', () => {
    const shared = new SharedBytes(250)
    const first = kept(500, [bytes(300)], shared)
    const second = kept(500, [bytes(120), bytes(80)], shared)
    expect([first.finished.truncated, second.finished.truncated]).toEqual([false, true])
    expect([second.finished.body.byteLength, shared.freeBytes]).toEqual([100, 50])
  })
})
