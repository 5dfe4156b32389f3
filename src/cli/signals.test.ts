import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { stopSignals } from './signals.js'

/** Signals sent by hand, and how many requests have been met of those that somebody waits for. */
function stage() {
  const clock = new ManualClock()
  const source = new EventEmitter()
  const requests = stopSignals(clock, source)
  let met = 0
  const wait = () => void requests.next().then(() => met++)
  const metSoon = async () => {
    await Promise.resolve()
    return met
  }
  return { clock, wait, metSoon, send: (signal: NodeJS.Signals) => void source.emit(signal) }
}

it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s is a request to stop', async (signal) => {
  const { wait, metSoon, send } = stage()
  wait()
  expect(await metSoon()).toBe(0)
  send(signal)
  expect(await metSoon()).toBe(1)
})

it('a request that comes before anybody waits is kept', async () => {
  const { wait, metSoon, send } = stage()
  send('SIGTERM')
  wait()
  expect(await metSoon()).toBe(1)
})

it('what comes within a second of a request belongs to it; what comes later is the next one', async () => {
  const { clock, wait, metSoon, send } = stage()
  wait()
  wait()
  send('SIGINT')
  clock.advance(999)
  send('SIGINT')
  expect(await metSoon()).toBe(1)
  clock.advance(1)
  send('SIGINT')
  expect(await metSoon()).toBe(2)
})
