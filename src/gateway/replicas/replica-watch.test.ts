import { beforeEach, describe, expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Position } from './replica-watch.js'
import { REPLICA_WAIT_MS, ReplicaWatch } from './replica-watch.js'

/** Engines at positions that the test sets. */
let primary: Position
let replica: Position | 'silent' | 'away'
let clock: ManualClock
let watch: ReplicaWatch
let drops: number

const at = (offset: number, history = 'first'): Position => ({ history, offset })

beforeEach(() => {
  clock = new ManualClock()
  primary = at(100)
  replica = at(100)
  drops = 0
  watch = new ReplicaWatch({
    clock,
    drop: () => drops++,
    askPrimary: async () => primary,
    askReplica: () => {
      if (replica === 'silent') return new Promise(() => {})
      return replica === 'away' ? Promise.reject(new Error('away')) : Promise.resolve(replica)
    },
  })
})

/** Lets time pass in small steps, with all consequences of each. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed++) {
    clock.advance(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Waits for the present moment. Resolves to undefined when it is still pending after `ms`. */
async function reachedWithin(ms: number): Promise<boolean | undefined> {
  let answer: boolean | undefined
  void watch.until(watch.now).then((reached) => {
    answer = reached
  })
  await pass(ms)
  return answer
}

describe('a moment', () => {
  it('is not reached before the replica has shown that it has it', async () => {
    expect(watch.has(watch.now)).toBe(false)
    expect(await reachedWithin(2)).toBe(true)
    expect(watch.has(1)).toBe(true)
    expect(watch.has(watch.now)).toBe(false)
  })

  it('is reached as soon as the replica has the position of the primary', async () => {
    replica = at(99)
    let answer: boolean | undefined
    void watch.until(watch.now).then((reached) => {
      answer = reached
    })
    await pass(20)
    expect(answer).toBe(undefined)
    replica = at(100)
    await pass(20)
    expect(answer).toBe(true)
  })

  it('is not reached by a replica that follows another history', async () => {
    replica = at(1_000, 'second')
    expect(await reachedWithin(REPLICA_WAIT_MS + 1)).toBe(false)
  })

  it('is shared by all reads that wait before the primary is asked', async () => {
    const first = Promise.all([watch.until(watch.now), watch.until(watch.now)])
    const second = watch.until(watch.now)
    await pass(3)
    expect([await first, await second]).toEqual([[true, true], true])
    expect(watch.now).toBeLessThanOrEqual(3)
  })
})

describe('a replica', () => {
  it('that lags delays one read; then none waits until it has caught up', async () => {
    await reachedWithin(2)
    replica = at(50)
    expect(await reachedWithin(REPLICA_WAIT_MS + 1)).toBe(false)
    expect(watch.mayWait()).toBe(false)
    expect(watch.has(1)).toBe(true)
    replica = at(100)
    await pass(50)
    expect(watch.mayWait()).toBe(true)
    expect(await reachedWithin(2)).toBe(true)
  })

  it('that cannot be asked is not asked again for a while, and not used meanwhile', async () => {
    await reachedWithin(2)
    replica = 'away'
    expect(await reachedWithin(2)).toBe(false)
    expect([drops, watch.has(1), watch.mayWait()]).toEqual([1, false, false])
    replica = at(100)
    await pass(500)
    expect(watch.mayWait()).toBe(true)
    expect(await reachedWithin(2)).toBe(true)
  })

  it('that hangs with pending reads is given up within a second', async () => {
    await reachedWithin(2)
    replica = 'silent'
    watch.sent()
    await pass(1_000)
    expect([drops, watch.has(1)]).toEqual([1, false])
  })

  it('whose connection is lost is not used, whatever was pending', async () => {
    await reachedWithin(2)
    replica = at(50)
    const waiting = watch.until(watch.now)
    await pass(2)
    watch.lost()
    expect(await waiting).toBe(false)
    replica = at(100)
    await pass(100)
    expect(watch.has(1)).toBe(false)
  })
})
