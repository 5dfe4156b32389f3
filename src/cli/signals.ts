import type { StopRequests } from './serve.js'

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Turns the signals that ask a process to end into stop requests, from now until the process ends. */
export function stopSignals(): StopRequests {
  let arrived = 0
  let taken = 0
  let wake = (): void => undefined
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      arrived++
      wake()
    })
  }
  const isThere = (number: number): Promise<void> =>
    arrived >= number
      ? Promise.resolve()
      : new Promise((resolve) => {
          const wakeOthers = wake
          wake = () => {
            wakeOthers()
            if (arrived >= number) resolve()
          }
        })
  return { next: () => isThere(++taken) }
}
