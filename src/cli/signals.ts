import type { EventEmitter } from 'node:events'
import type { Clock } from '../base/index.js'
import type { StopRequests } from './serve.js'

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Signals that follow a request this soon belong to it. */
const SAME_REQUEST_MS = 1_000

/**
 * Turns the signals that ask a process to end into stop requests, from now until the process ends.
 *
 * A terminal sends Ctrl-C to all its processes at once, and npm passes on to the server what it is sent itself: one wish
 * comes as two signals then, some milliseconds apart. It must not be taken for the impatience of somebody who asks again.
 */
export function stopSignals(clock: Clock, source: Pick<EventEmitter, 'on'> = process): StopRequests {
  const waiting: (() => void)[] = []
  let untaken = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const request = (): void => {
    if (clock.now() - lastMs < SAME_REQUEST_MS) return
    lastMs = clock.now()
    const next = waiting.shift()
    if (next) next()
    else untaken++
  }
  for (const signal of SIGNALS) source.on(signal, request)
  const next = (): Promise<void> =>
    new Promise((resolve) => {
      if (untaken === 0) return void waiting.push(resolve)
      untaken--
      resolve()
    })
  return { next }
}
