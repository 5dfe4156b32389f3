import { setTimeout as pause } from 'node:timers/promises'
import { type Pace, think } from '../crash/pace.js'
import type { RunningHomeport } from '../support/index.js'
import type { SoakServer } from './server.js'

/** A wrong answer of the server that no fault explains. */
export class Violation extends Error {}

/** How long an action may take before it counts as stuck: longer than any fault and the start after it. */
const STUCK_MS = 180_000
const BETWEEN_FAILURES_MS = 20

/** Actions that are repeated through all faults until the load is over. */
export class Loads {
  readonly #server: SoakServer
  readonly pace: Pace
  readonly #running: Promise<void>[] = []
  #over = false
  readonly violations: string[] = []
  /** How often actions failed because of faults, by message. */
  readonly refusals = new Map<string, number>()

  constructor(server: SoakServer, pace: Pace) {
    this.#server = server
    this.pace = pace
  }

  get isOver(): boolean {
    return this.#over
  }

  /** Repeats an action. Its errors are counted; a `Violation` fails the soak. */
  repeat(name: string, action: (homeport: RunningHomeport) => Promise<void>): void {
    this.#running.push(this.#loop(name, action))
  }

  /** Prevents further actions. */
  finish(): void {
    this.#over = true
  }

  /** Resolves when every action has ended. The server may have to be killed for that. */
  async ended(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #loop(name: string, action: (homeport: RunningHomeport) => Promise<void>): Promise<void> {
    while (!this.#over) {
      const homeport = await this.#server.whenUp()
      if (this.#over) return
      try {
        await inTime(name, action(homeport))
        await think(this.pace)
      } catch (error) {
        this.#note(name, error)
        await pause(BETWEEN_FAILURES_MS)
      }
    }
  }

  #note(name: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    if (error instanceof Violation) this.violations.push(`${name}: ${message}`)
    const short = message.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, '…').slice(0, 100)
    this.refusals.set(short, (this.refusals.get(short) ?? 0) + 1)
  }
}

async function inTime(name: string, action: Promise<void>): Promise<void> {
  const cancel = new AbortController()
  const late = pause(STUCK_MS, undefined, { signal: cancel.signal }).then(() => {
    throw new Violation(`${name} has not ended after ${STUCK_MS / 1000} s`)
  })
  late.catch(() => undefined)
  try {
    await Promise.race([action, late])
  } finally {
    cancel.abort()
  }
}
