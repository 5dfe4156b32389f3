import { setTimeout as pause } from 'node:timers/promises'
import type { RunningHomeport } from '../support/index.js'
import type { SoakServer } from './server.js'

/** An answer of the server that no fault explains. */
export class Violation extends Error {}

/** How long a deed may take before it counts as stuck: longer than any fault and the start after it. */
const STUCK_MS = 180_000
const BETWEEN_FAILURES_MS = 20

/** Deeds that are done again and again, through all faults, until the load is over. */
export class Loads {
  readonly #server: SoakServer
  readonly #running: Promise<void>[] = []
  #over = false
  readonly violations: string[] = []
  /** How often deeds failed as faults make them fail, by what was said. */
  readonly refusals = new Map<string, number>()

  constructor(server: SoakServer) {
    this.#server = server
  }

  get isOver(): boolean {
    return this.#over
  }

  /** Repeats a deed. What it throws is noted; a `Violation` fails the soak. */
  repeat(name: string, deed: (homeport: RunningHomeport) => Promise<void>): void {
    this.#running.push(this.#loop(name, deed))
  }

  /** No deed begins any more. */
  finish(): void {
    this.#over = true
  }

  /** Resolves when every deed has ended. The server may have to be killed for that. */
  async ended(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #loop(name: string, deed: (homeport: RunningHomeport) => Promise<void>): Promise<void> {
    while (!this.#over) {
      const homeport = await this.#server.whenUp()
      if (this.#over) return
      try {
        await inTime(name, deed(homeport))
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

async function inTime(name: string, deed: Promise<void>): Promise<void> {
  const cancel = new AbortController()
  const late = pause(STUCK_MS, undefined, { signal: cancel.signal }).then(() => {
    throw new Violation(`${name} has not ended after ${STUCK_MS / 1000} s`)
  })
  late.catch(() => undefined)
  try {
    await Promise.race([deed, late])
  } finally {
    cancel.abort()
  }
}
