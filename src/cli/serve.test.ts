import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { type Servable, type StopRequests, serve, stopSignals } from './serve.js'

/** Calls `serve` with a fake application; `events` records the order of its calls. */
function startServe(app: Partial<Servable> = {}) {
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

it('starts, reports that it serves, stops on request, and exits with 0', async () => {
  const { code, events, ask, clock } = startServe()
  await settle()
  expect(events).toEqual(['start', 'serving'])
  ask()
  expect(await code).toBe(0)
  expect(events).toEqual(['start', 'serving', 'stop'])
  expect(clock.pendingTimers).toBe(0)
})

it('`serve` can be stopped while it starts', async () => {
  const { code, events, ask } = startServe({ start: never })
  await settle()
  ask()
  expect(await code).toBe(0)
  expect(events).toEqual(['start', 'stop'])
})

it('`serve` stops the application when its start fails, and throws the reason', async () => {
  const { code, events } = startServe({ start: () => Promise.reject(new Error('port taken')) })
  await expect(code).rejects.toThrow('port taken')
  expect(events).toEqual(['start', 'stop'])
})

it('`serve` exits at once with 1 on a second request', async () => {
  const { code, ask } = startServe({ stop: never })
  await settle()
  ask()
  await settle()
  ask()
  expect(await code).toBe(1)
})

it('`serve` fails when stopping takes longer than the deadline', async () => {
  const { code, ask, clock } = startServe({ stop: never })
  await settle()
  ask()
  await settle()
  clock.advance(5000)
  await expect(code).rejects.toThrow('did not stop within 5000 ms')
})

/** Sends signals by hand, and counts how many waiting calls have got a request. */
function startSignals() {
  const clock = new ManualClock()
  const source = new EventEmitter()
  const requests = stopSignals(clock, source)
  let requested = 0
  const wait = () => void requests.next().then(() => requested++)
  const requestCount = async () => {
    await Promise.resolve()
    return requested
  }
  return { clock, wait, requestCount, send: (signal: NodeJS.Signals) => void source.emit(signal) }
}

it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s is a request to stop', async (signal) => {
  const { wait, requestCount, send } = startSignals()
  wait()
  expect(await requestCount()).toBe(0)
  send(signal)
  expect(await requestCount()).toBe(1)
})

it('the signal handler keeps a request until somebody waits for it', async () => {
  const { wait, requestCount, send } = startSignals()
  send('SIGTERM')
  wait()
  expect(await requestCount()).toBe(1)
})

it('the signal handler counts signals within a second as one request, and a later one as the next', async () => {
  const { clock, wait, requestCount, send } = startSignals()
  wait()
  wait()
  send('SIGINT')
  clock.advance(999)
  send('SIGINT')
  expect(await requestCount()).toBe(1)
  clock.advance(1)
  send('SIGINT')
  expect(await requestCount()).toBe(2)
})
