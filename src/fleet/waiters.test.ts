import { describe, expect, test } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { Waiters } from './waiters.js'

describe('waiting for a condition', () => {
  test('resolves when the condition holds at a check', async () => {
    const waiters = new Waiters(new ManualClock())
    let value: string | undefined
    const waiting = waiters.wait(() => value, {})
    waiters.check()
    value = 'now'
    waiters.check()
    expect(await waiting).toBe('now')
    expect(await waiters.wait(() => value, {})).toBe('now')
  })

  test('rejects with what the condition throws', async () => {
    const waiting = new Waiters(new ManualClock()).wait(() => {
      throw new Error('never')
    }, {})
    await expect(waiting).rejects.toThrow('never')
  })

  test('rejects at the deadline or when aborted, and leaves no timer', async () => {
    const clock = new ManualClock()
    const waiters = new Waiters(clock)
    const deadline = { afterMs: 10, onTimeout: () => new Error('too late') }
    const late = waiters.wait(() => undefined, { deadline })
    const abort = new AbortController()
    const left = waiters.wait(() => undefined, { deadline, signal: abort.signal })
    abort.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    await expect(waiters.wait(() => undefined, { deadline, signal: abort.signal })).rejects.toThrow('gone')
    expect(clock.pendingTimers).toBe(1)
    clock.advance(10)
    await expect(late).rejects.toThrow('too late')
    expect(clock.pendingTimers).toBe(0)
  })
})
