import { pause } from '../base/index.js'
import { requireLogged, type ShrinkResult, shrinkLog } from './log-rewrite.js'
import type { DatabaseSupervisor } from './supervisor.js'
import type { FleetOptions } from './types.js'

const REPORT_WITHIN_MS = 1_000

/** Rewrites the logs of append-only databases when the disk fills up. */
export class LogShrinking {
  readonly #deps: Pick<FleetOptions, 'clock' | 'logger'>
  readonly #supervisors: () => ReadonlyMap<string, DatabaseSupervisor>
  /** Databases for which it was logged that there is too little space to rewrite their logs. */
  readonly #blocked = new Set<string>()

  /** @param supervisors supervisors of the databases in use, by database id. */
  constructor(
    deps: Pick<FleetOptions, 'clock' | 'logger'>,
    supervisors: () => ReadonlyMap<string, DatabaseSupervisor>,
  ) {
    this.#deps = deps
    this.#supervisors = supervisors
  }

  /** Rewrites one log after the other, because each needs space for its new log. */
  async shrinkAll(freeBytes: number): Promise<void> {
    const { clock, logger } = this.#deps
    for (const [databaseId, supervisor] of [...this.#supervisors()]) {
      const [primary] = supervisor.serving()
      if (!primary || supervisor.persistence !== 'append-only') continue
      const shrinking = await shrinkLog({ ...primary, clock }, freeBytes).catch((error: unknown) => {
        logger.warn('disk_log_rewrite_failed', { error, databaseId })
      })
      if (shrinking) this.#note(databaseId, shrinking, freeBytes)
    }
  }

  /** Logs which databases lose acknowledged writes by a stop, because their append-only logs lack them. */
  async reportIncomplete(): Promise<void> {
    const { clock, logger } = this.#deps
    const logged = [...this.#supervisors()].map(async ([databaseId, supervisor]) => {
      const [primary] = supervisor.serving()
      if (!primary || supervisor.persistence !== 'append-only') return
      await requireLogged(primary.address).catch(() => logger.error('engine_log_incomplete', { databaseId }))
    })
    // An engine that does not answer must not delay the stop.
    await Promise.race([Promise.all(logged), pause(clock, REPORT_WITHIN_MS)])
  }

  /** Forgets a database that was deleted. */
  forget(databaseId: string): void {
    this.#blocked.delete(databaseId)
  }

  /** Logs a lack of space once per database, and again after the log was small meanwhile. */
  #note(databaseId: string, shrinking: ShrinkResult, freeBytes: number): void {
    if (shrinking.kind !== 'lacks-space') this.#blocked.delete(databaseId)
    else if (!this.#blocked.has(databaseId)) {
      this.#blocked.add(databaseId)
      const { neededBytes } = shrinking
      this.#deps.logger.warn('disk_log_rewrite_lacks_space', { databaseId, neededBytes, freeBytes })
    }
  }
}
