import { describe, expect, it } from 'vitest'
import { EntryWatch } from './entry-watch.js'

const LIMIT = 1_600
/** A sixteenth of the limit. */
const INTERVAL = 100

/** A watch, and an engine that knows the size of every entry and records the questions. */
function watched(size: number) {
  const engine = { size }
  const asked: string[] = []
  const ask = async (command: Buffer): Promise<Buffer> => {
    asked.push(command.toString().split('\r\n').at(-2) ?? '')
    return Buffer.from(`:${engine.size}\r\n`)
  }
  const watch = new EntryWatch(LIMIT)
  const add = (name: string, bytes: number) => watch.admit({ key: Buffer.from(name), bytes, how: 'adds' }, ask)
  const make = (name: string, bytes: number) => watch.admit({ key: Buffer.from(name), bytes, how: 'makes' }, ask)
  /** Makes the watch know the size of an entry. */
  const know = async (name: string, bytes: number) => {
    engine.size = bytes
    add(name, INTERVAL)
    await new Promise(setImmediate)
  }
  const passes = (name: string, bytes: number): boolean => {
    const frame = Buffer.from(`*3\r\n$6\r\nAPPEND\r\n$${name.length}\r\n${name}\r\n$1\r\nx\r\n`)
    return watch.passes(frame, frame.indexOf('APPEND') + 'APPEND'.length, bytes)
  }
  return { watch, engine, asked, ask, add, make, know, passes }
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

  it('asks about a large entry only when it would pass the limit by what was sent since', async () => {
    const { engine, asked, add, make, know } = watched(0)
    await know('large', LIMIT - 100)
    expect([make('large', LIMIT - 200), add('large', 60), add('large', 40)]).toEqual([0, 0, 0])
    // Meanwhile it has shrunk.
    engine.size = LIMIT - 90
    const fresh = add('large', 80)
    expect(fresh).toBeInstanceOf(Promise)
    expect([await fresh, add('large', 10)]).toEqual([0, 0])
    engine.size = LIMIT
    expect(await add('large', 1)).toBe(LIMIT + 1)
    const before = asked.length
    expect([add('other', LIMIT + 1), asked.length]).toEqual([LIMIT + 1, before])
  })

  it('no longer tracks an entry that has become small, however often it was measured', async () => {
    const { know, passes } = watched(0)
    await know('large', LIMIT - 200)
    await know('large', LIMIT - 400)
    expect(passes('large', 1)).toBe(false)
    await know('large', 10)
    expect(passes('large', 1)).toBe(true)
  })

  it('forgets all sizes when the limit changes', async () => {
    const { watch, asked, add, know, passes } = watched(0)
    await know('large', LIMIT - 10)
    watch.limitBytes = 2 * LIMIT
    expect(passes('large', 1)).toBe(true)
    watch.limitBytes = LIMIT
    expect([add('large', 11), asked.length]).toEqual([0, 1])
  })

  it('asks before a streamed command that adds, and about the key that it has read', async () => {
    const { watch, engine, asked, ask } = watched(LIMIT - 10)
    const upload = (how: 'adds' | 'makes', bytes: number) =>
      watch.admitUpload({ key: Buffer.from('stream'), bytes, how }, ask)
    expect([upload('makes', LIMIT), upload('makes', LIMIT + 1), asked.length]).toEqual([0, LIMIT + 1, 0])
    expect([await upload('adds', 10), await upload('adds', 11), asked]).toEqual([0, LIMIT + 1, ['stream', 'stream']])
    engine.size = 10
    // The memory of the key is that of a read, and belongs to the next one.
    const key = Buffer.from('key')
    watch.admit({ key, bytes: INTERVAL, how: 'adds' }, ask)
    key.write('xyz')
    await new Promise(setImmediate)
    expect(asked.at(-1)).toBe('key')
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
