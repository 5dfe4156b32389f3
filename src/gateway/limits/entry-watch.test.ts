import { describe, expect, it } from 'vitest'
import { EntryWatch } from './entry-watch.js'

const LIMIT = 1_600
/** A sixteenth of the limit. */
const INTERVAL = 100

/** A watch, and an engine that knows the size of every entry and records the questions. */
function watched(size: number) {
  const asked: string[] = []
  const ask = async (command: Buffer): Promise<Buffer> => {
    asked.push(command.toString().split('\r\n').at(-2) ?? '')
    return Buffer.from(`:${size}\r\n`)
  }
  const watch = new EntryWatch(LIMIT)
  const add = (name: string, bytes: number) => watch.admit({ key: Buffer.from(name), bytes, how: 'adds' }, ask)
  const passes = (name: string, bytes: number): boolean => {
    const frame = Buffer.from(`*3\r\n$6\r\nAPPEND\r\n$${name.length}\r\n${name}\r\n$1\r\nx\r\n`)
    return watch.passes(frame, frame.indexOf('APPEND') + 'APPEND'.length, bytes)
  }
  return { watch, asked, add, passes }
}

describe('the entry watch', () => {
  it('loses no byte while the database is asleep: every slot restarts with the count of the fullest', async () => {
    const { watch, asked, add, passes } = watched(10)
    expect(passes('a', INTERVAL - 2)).toBe(true)
    watch.freeSlots()
    expect([passes('a', 1), passes('b', 1), passes('b', 1)]).toEqual([true, true, false])
    expect(add('b', 1)).toBe(0)
    await Promise.resolve()
    expect(asked).toEqual(['b'])
    expect(passes('b', 1)).toBe(true)
  })

  it('still tracks a large entry after the database was asleep', async () => {
    const { watch, add, passes } = watched(LIMIT - 10)
    expect(add('large', INTERVAL)).toBe(0)
    await expect.poll(() => passes('large', 1)).toBe(false)
    watch.freeSlots()
    watch.freeSlots()
    expect(passes('large', 1)).toBe(false)
    expect(await add('large', 11)).toBe(LIMIT + 1)
  })

  it('watches a new entry after thousands of large ones have come and gone', async () => {
    const { add, passes } = watched(LIMIT - 10)
    for (let entry = 0; entry < 5_000; entry++) add(`gone ${entry}`, INTERVAL)
    await new Promise(setImmediate)
    add('new', INTERVAL)
    await new Promise(setImmediate)
    expect(passes('new', 1)).toBe(false)
    expect(await add('new', 11)).toBe(LIMIT + 1)
  })

  it('does not keep the long names of entries', async () => {
    const watch = new EntryWatch(LIMIT)
    const ask = async (): Promise<Buffer> => Buffer.from(`:${LIMIT}\r\n`)
    const before = process.memoryUsage().heapUsed
    for (let entry = 0; entry < 20; entry++) {
      const key = Buffer.alloc(2 ** 20)
      key.writeInt32LE(entry)
      watch.admit({ key, bytes: INTERVAL, how: 'adds' }, ask)
      await new Promise(setImmediate)
    }
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10 * 2 ** 20)
  })
})
