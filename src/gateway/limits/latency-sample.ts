import type { DatabaseMeter } from '../../telemetry/index.js'

const NOTHING = -1

/**
 * Measures the latency of one client's commands, one command at a time: of commands that are sent together, the last. So it
 * measures every command of a client that waits for each reply, and one command of a pipeline.
 */
export class LatencySample {
  readonly #meter: Pick<DatabaseMeter, 'readLatency' | 'writeLatency'>
  /** Number of replies after which the command is answered. */
  #mark = NOTHING
  #sentAt = 0
  #writes = false

  constructor(meter: Pick<DatabaseMeter, 'readLatency' | 'writeLatency'>) {
    this.#meter = meter
  }

  /** A command was sent whose reply will be the client's number `mark`; `writes` chooses the histogram. */
  begin(mark: number, writes: boolean): void {
    if (this.#mark !== NOTHING) return
    this.#mark = mark
    this.#writes = writes
    this.#sentAt = performance.now()
  }

  /** `count` replies have arrived since the client connected. */
  answered(count: number): void {
    if (this.#mark === NOTHING || count < this.#mark) return
    this.#mark = NOTHING
    const { readLatency, writeLatency } = this.#meter
    const durationUs = 1000 * (performance.now() - this.#sentAt)
    if (this.#writes) writeLatency.record(durationUs)
    else readLatency.record(durationUs)
  }
}
