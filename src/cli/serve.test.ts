import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { type Servable, type StopRequests, serve } from './serve.js'

/** A server whose steps are taken by hand, and a record of what happened in which order. */
function stage(app: Partial<Servable> = {}) {
  const events: string[] = []
  const clock = new ManualClock()
  const requests: (() => void)[] = []
  let asked = 0
  const stopRequests: StopRequests = {
    next: () => new Promise((resolve) => void requests.push(resolve)),
  }
  const record = (name: string, action?: () => Promise<void>) => async () => {
    events.push(name)
    await action?.()
  }
  const code = serve({
    app: { start: record('start', app.start), stop: record('stop', app.stop) },
    stopRequests,
    clock,
    stopDeadlineMs: 5000,
    onServing: () => void events.push('serving'),
  })
  return { code, events, clock, ask: () => requests[asked++]?.() }
}

const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve()
}
const never = () => new Promise<void>(() => undefined)

it('starts, says so, waits to be asked, stops, and ends with 0', async () => {
  const { code, events, ask, clock } = stage()
  await settle()
  expect(events).toEqual(['start', 'serving'])
  ask()
  expect(await code).toBe(0)
  expect(events).toEqual(['start', 'serving', 'stop'])
  expect(clock.pendingTimers).toBe(0)
})

it('can be asked to stop while it still starts', async () => {
  const { code, events, ask } = stage({ start: never })
  await settle()
  ask()
  expect(await code).toBe(0)
  expect(events).toEqual(['start', 'stop'])
})

it('stops what had started when a part fails, and throws the reason', async () => {
  const { code, events } = stage({ start: () => Promise.reject(new Error('port taken')) })
  await expect(code).rejects.toThrow('port taken')
  expect(events).toEqual(['start', 'stop'])
})

it('ends at once with 1 when it is asked again', async () => {
  const { code, ask } = stage({ stop: never })
  await settle()
  ask()
  await settle()
  ask()
  expect(await code).toBe(1)
})

it('is given up when stopping takes longer than the deadline', async () => {
  const { code, ask, clock } = stage({ stop: never })
  await settle()
  ask()
  await settle()
  clock.advance(5000)
  await expect(code).rejects.toThrow('did not stop within 5000 ms')
})
