import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  formatDuration,
  jsonWithBytes,
  nearestWord,
  newId,
  parseDuration,
  type Service,
  stopAll,
  timeOfId,
} from './index.js'
import { ManualClock } from './testing/manual-clock.js'

describe('durations', () => {
  it.each([
    ['10s', 10_000],
    ['1d10h30m', 124_200_000],
    ['250ms', 250],
    ['1m1ms', 60_001],
    ['0s', 0],
    ['1.5s', 1_500],
    ['1h0.5m', 3_630_000],
    ['0.0004s', 0],
  ])('parses %s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  it.each(['', '10', 's', '1.s', '.5s', '1.5', '1.5.5s', '-1s', '1 s', '1w', '10s ', '99999999999999999d'])(
    'rejects "%s"',
    (text) => {
      expect(parseDuration(text)).toBeUndefined()
    },
  )

  it('parses its own output', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 10 ** 13 }), (ms) => parseDuration(formatDuration(ms)) === ms))
  })
})

describe('JSON with bytes', () => {
  it.each([0, 1, 300_000, 786_432, 786_433, 2_000_000])(
    'has %i bytes in base64, as if made at once',
    async (length) => {
      const bytes = Uint8Array.from({ length }, (_, index) => index * 7)
      const object = { status: 200, body: bytes, none: undefined, header: { name: ['größe'] }, more: bytes.subarray(1) }
      const base64 = (part: Uint8Array) => Buffer.from(part).toString('base64')
      const made = Buffer.from(await jsonWithBytes(object)).toString()
      expect(made).toBe(JSON.stringify({ ...object, body: base64(bytes), more: base64(object.more) }))
    },
  )

  it('is made in several turns of the event loop', async () => {
    let turns = 0
    let isDone = false
    const look = (): unknown => !isDone && ++turns && setImmediate(look)
    setImmediate(look)
    await jsonWithBytes({ body: new Uint8Array(64_000_000) })
    isDone = true
    expect(turns).toBeGreaterThan(2)
  })
})

describe('the closest known word', () => {
  it.each([
    ['lable', 'label'],
    ['workflowurl', 'workflowUrl'],
    ['HOST', 'host'],
    ['ab', undefined],
    ['something', undefined],
  ])('to %s is %s', (word, expected) => {
    expect(nearestWord(word, ['label', 'workflowUrl', 'host', 'path'])).toBe(expected)
  })

  it('is not computed for words whose length already rules it out', () => {
    const known = Array.from({ length: 1_000 }, (_, index) => `name${index}`)
    // Computing these edit distances would take minutes.
    expect(nearestWord('x'.repeat(10_000_000), known)).toBeUndefined()
  })
})

describe('ids', () => {
  it('sort by creation time', () => {
    const times = [0, 1, 61, 62, 3_843, 1_700_000_000_000, 1_700_000_000_001, 2 ** 47]
    const ids = times.map((ms) => newId('msg_', ms))
    expect([...ids].sort()).toEqual(ids)
    expect(ids.map((id) => timeOfId('msg_', id))).toEqual(times)
    expect(['msg_', 'dlq_00000001', 'msg_000-0001'].map((text) => timeOfId('msg_', text))).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  it('are unique within one millisecond', () => {
    const ids = Array.from({ length: 5_000 }, () => newId('', 1))
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every((id) => /^[0-9A-Za-z]{22}$/.test(id))).toBe(true)
  })
})

describe('stopping services', () => {
  const service = (name: string, stop: () => Promise<void>): Service => ({ name, start: async () => {}, stop })

  it('goes in reverse order and continues after a failure', async () => {
    const stopped: string[] = []
    const record = (name: string) => service(name, async () => void stopped.push(name))
    const broken = service('broken', async () => Promise.reject(new Error('no')))
    await expect(stopAll([record('a'), broken, record('b')])).rejects.toThrow('some services did not stop cleanly')
    expect(stopped).toEqual(['b', 'a'])
  })

  it('shares one grace period: time used by one service is not available to the next', async () => {
    const clock = new ManualClock(0)
    const graces: (number | undefined)[] = []
    const taking = (ms: number): Service => ({
      name: 'service',
      start: async () => {},
      stop: async (graceMs) => {
        graces.push(graceMs)
        clock.advance(ms)
      },
    })
    await stopAll([taking(1), taking(8_000), taking(7_000), taking(0)], { clock, graceMs: 10_000 })
    expect(graces).toEqual([10_000, 10_000, 3_000, 0])
  })

  it('stops a parallel group together, then the services before it', async () => {
    const clock = new ManualClock(0)
    const ended: string[] = []
    const taking = (name: string, ms: number): Service => ({
      name,
      start: async () => {},
      stop: (graceMs) =>
        new Promise((resolve) => {
          clock.after(ms, () => {
            ended.push(`${name} of ${graceMs}`)
            resolve()
          })
        }),
    })
    const services = [taking('first', 0), [taking('left', 8_000), taking('right', 9_000)]]
    const stopped = stopAll(services, { clock, graceMs: 10_000 })
    clock.advance(9_000)
    await vi.waitFor(() => expect(clock.pendingTimers).toBe(1))
    clock.advance(0)
    await stopped
    expect(ended).toEqual(['left of 10000', 'right of 10000', 'first of 1000'])
  })
})

describe('the manual clock', () => {
  it('fires timers in order of time, including timers set meanwhile, and skips cancelled ones', () => {
    const clock = new ManualClock(1_000)
    const fired: string[] = []
    const note = (name: string) => () => fired.push(`${name}@${clock.now()}`)
    clock.after(20, note('late'))
    clock.after(5, () => clock.after(5, note('nested')))
    clock.after(7, note('cancelled')).cancel()
    clock.advance(15)
    expect(fired).toEqual(['nested@1010'])
    expect(clock.pendingTimers).toBe(1)
    clock.advance(5)
    expect(fired).toEqual(['nested@1010', 'late@1020'])
  })
})
