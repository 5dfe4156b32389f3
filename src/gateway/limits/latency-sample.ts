import type { DatabaseMeter } from '../../telemetry/index.js'

const NOTHING = -1

/**
 * Measures the commands of one client from their departure to their reply: one at a time, the last of those that left
 * together. So every command of a client that waits for each reply is measured, and of a pipeline one.
 */
export class LatencySample {
  readonly #meter: Pick<DatabaseMeter, 'readLatency' | 'writeLatency'>
  /** The command is answered when so many replies have come. */
  #mark = NOTHING
  #sentAt = 0
  #writes = false

  constructor(meter: Pick<DatabaseMeter, 'readLatency' | 'writeLatency'>) {
    this.#meter = meter
  }

  /** A command left whose reply will be number `mark` of the client; `writes` tells which histogram it goes to. */
  begin(mark: number, writes: boolean): void {
    if (this.#mark !== NOTHING) return
    this.#mark = mark
    this.#writes = writes
    this.#sentAt = performance.now()
  }

  /** So many replies have come. */
  answered(count: number): void {
    if (this.#mark === NOTHING || count < this.#mark) return
    this.#mark = NOTHING
    const { readLatency, writeLatency } = this.#meter
    const durationUs = 1000 * (performance.now() - this.#sentAt)
    if (this.#writes) writeLatency.record(durationUs)
    else readLatency.record(durationUs)
  }
}
