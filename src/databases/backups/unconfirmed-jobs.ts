import type { DatabasesDeps } from '../deps.js'
import * as restores from '../transactions/restores.js'
import { type SettlesUnconfirmed, UnconfirmedWork } from '../unconfirmed-work.js'

/** Backups, restores and imports that may have begun in the store although the answer to the commit was lost. */
export class UnconfirmedJobs implements SettlesUnconfirmed {
  readonly #deps: Pick<DatabasesDeps, 'store' | 'clock'>
  readonly #begins = new UnconfirmedWork<restores.Job>()

  constructor(deps: Pick<DatabasesDeps, 'store' | 'clock'>) {
    this.#deps = deps
  }

  /** Passes on the outcome of a begin, and notes the job when the outcome is unknown. */
  watch<Outcome>(job: restores.Job, begin: Promise<Outcome>): Promise<Outcome> {
    return this.#begins.watch(job, begin, this.#deps.clock.now())
  }

  /** Makes the jobs that have begun fail, as a start does. */
  async settleUnconfirmed(): Promise<void> {
    const at = this.#deps.clock.now()
    for (const job of this.#begins.recent(at)) await this.#deps.store.run(restores.giveUp, { ...job, at })
  }
}
