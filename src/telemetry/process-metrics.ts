import { readdir } from 'node:fs/promises'
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { maxOpenFiles } from '../base/index.js'
import type { Figures } from './metrics.js'

/** Interval at which the lag of the event loop is measured, milliseconds. Measuring begins with the first scrape. */
const RESOLUTION_MS = 20
/** Scrapes within this time read the same delays. */
const LAG_KEPT_MS = 10_000

/** Resources that this process uses. Nothing is measured before the first scrape. */
export class ProcessMetrics {
  #delays: IntervalHistogram | undefined
  #lag: { readonly atMs: number; readonly figures: Figures } | undefined

  /** The present figures. */
  async figures(): Promise<Figures> {
    const { user, system } = process.cpuUsage()
    const { rss, heapUsed, external } = process.memoryUsage()
    return {
      process_start_time_seconds: performance.timeOrigin / 1_000,
      process_cpu_seconds_total: (user + system) / 1e6,
      process_resident_memory_bytes: rss,
      nodejs_heap_used_bytes: heapUsed,
      nodejs_external_memory_bytes: external,
      nodejs_eventloop_utilization_ratio: performance.eventLoopUtilization().utilization,
      ...this.#lagFigures(performance.now()),
      ...(await descriptorFigures()),
    }
  }

  /** Stops measuring. */
  stop(): void {
    this.#delays?.disable()
    this.#delays = undefined
  }

  #lagFigures(nowMs: number): Figures {
    if (this.#lag && nowMs - this.#lag.atMs < LAG_KEPT_MS) return this.#lag.figures
    if (!this.#delays) {
      this.#delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
      this.#delays.enable()
    }
    const { mean, max } = this.#delays
    const figures = {
      nodejs_eventloop_lag_mean_seconds: lagOf(mean),
      nodejs_eventloop_lag_p99_seconds: lagOf(this.#delays.percentile(99)),
      nodejs_eventloop_lag_max_seconds: lagOf(max),
    }
    this.#delays.reset()
    this.#lag = { atMs: nowMs, figures }
    return figures
  }
}

/** Lag in seconds. The histogram holds whole intervals, in nanoseconds; before the first one, its mean is not a number. */
function lagOf(intervalNs: number): number {
  return Number.isFinite(intervalNs) ? Math.max(0, intervalNs / 1e9 - RESOLUTION_MS / 1_000) : 0
}

/** Open file descriptors. Linux lists them in a folder; elsewhere they are unknown. */
async function descriptorFigures(): Promise<Figures> {
  try {
    const open = await readdir('/proc/self/fd')
    const most = maxOpenFiles()
    return { process_open_fds: open.length, ...(most !== undefined && { process_max_fds: most }) }
  } catch {
    return {}
  }
}
