import type { Clock, Timer } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger, QueueMeter } from '../../telemetry/index.js'
import type { PendingRow } from '../transactions/messages.js'
import type { Backlog } from './backlog.js'
import type { Load } from './coverage.js'
import { pauseAfter, UnreadableMessages } from './damage.js'
import { DueReader } from './read-due.js'
import type { StoredLimits } from './stored-limits.js'

/** What a loader is built from. */
export interface LoaderDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly meter: QueueMeter
  readonly backlog: Backlog
  /** The partitions to read; `undefined`: all. */
  readonly partitions: () => readonly number[] | undefined
  readonly limits: StoredLimits
  /** Called after a load of strays that a sweep has found, with the numbers of those that it did not bring. */
  readonly onStrays: (unread: readonly number[] | 'failed') => void
  /** Called when a load has brought messages. */
  readonly onMessages: () => void
  /** Called when a load has ended, or may be tried again. */
  readonly onOver: () => void
}

/**
 * Whether a hint of another node named these messages. The hint also names the flow-control keys whose limits they set,
 * so those limits are already read. For other loads the hint may have been lost, or its sender killed after the commit.
 */
const isHinted = (load: Load): boolean => load.kind === 'strays' && load.foundBy === 'hint'

/** Runs the loads of the backlog, one at a time. */
export class Loader {
  readonly #deps: LoaderDeps
  readonly #due: DueReader
  readonly #unreadable: UnreadableMessages
  /** While this timer runs, no load starts. */
  #pause: Timer | undefined
  #failures = 0
  #isStopped = false

  constructor(deps: LoaderDeps) {
    this.#deps = deps
    this.#unreadable = new UnreadableMessages(deps, (from) => {
      deps.backlog.loadAgainFrom(from)
      deps.onOver()
    })
    this.#due = new DueReader(deps.store, (place) => this.#unreadable.add(place))
  }

  stop(): void {
    this.#isStopped = true
    this.#pause?.cancel()
    this.#unreadable.stop()
  }

  /** Starts the next load, if there is one. */
  next(now: number): void {
    const { backlog, partitions } = this.#deps
    const own = partitions()
    // A node without a partition reads nothing.
    if (this.#pause || own?.length === 0) return
    const load = backlog.nextLoad(now)
    if (load) void this.#run(own ? { ...load, partitions: own } : load)
  }

  /** Never rejects. */
  async #run(load: Load): Promise<void> {
    const { backlog, clock, logger, limits, onMessages, onOver } = this.#deps
    try {
      const page = await this.#due.read(load)
      if (load.partitions && !isHinted(load)) await limits.readOf(page.rows)
      this.#failures = 0
      const { strays, damaged } = backlog.loaded(load, page, clock.now())
      for (const place of damaged) this.#unreadable.add(place)
      const unread = new Set(damaged.map(({ seq }) => seq))
      this.#noteTry(
        load,
        page.rows.filter(({ seq }) => !unread.has(seq)),
      )
      if (strays > 0) this.#noteStrays(strays)
      if (page.rows.length > 0) onMessages()
      onOver()
    } catch (error) {
      backlog.loadFailed(load)
      this.#noteTry(load, 'failed')
      if (this.#isStopped) return
      logger.error('queue_due_not_read', { error })
      const failures = isError(error, 'store_damaged') ? ++this.#failures : 0
      this.#pause = clock.after(pauseAfter(failures), () => {
        this.#pause = undefined
        onOver()
      })
    }
  }

  #noteTry(load: Load, rows: readonly PendingRow[] | 'failed'): void {
    if (load.kind !== 'strays' || load.foundBy !== 'sweep') return
    const read = rows !== 'failed' && new Set(rows.map(({ seq }) => seq))
    this.#deps.onStrays(read ? load.seqs.filter((seq) => !read.has(seq)) : 'failed')
  }

  #noteStrays(strays: number): void {
    this.#deps.meter.strays += strays
    this.#deps.logger.warn('queue_strays_found', { strays })
  }
}
