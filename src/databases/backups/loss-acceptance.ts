import { auditRow } from '../../accounts/index.js'
import { unreachable } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { EngineSpec } from '../../fleet/index.js'
import type { Caller } from '../../http/index.js'
import { engineSpecOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import * as databasesData from '../transactions/databases-data.js'
import { type SettlesUnconfirmed, UnconfirmedWork } from '../unconfirmed-work.js'
import { refuse } from './answers.js'
import { type BackupDeps, retryUntilDone } from './deps.js'
import type { Restores } from './restores.js'

/**
 * Starts a database without its missing or damaged data, because the owner has accepted the loss. The database is
 * `restoring` meanwhile, and its clients wait. After a crash the owner can accept the loss again.
 */
export class LossAcceptance implements SettlesUnconfirmed {
  readonly #deps: BackupDeps
  readonly #restores: Restores
  readonly #lost = new UnconfirmedWork()

  constructor(deps: BackupDeps, restores: Restores) {
    this.#deps = deps
    this.#restores = restores
  }

  /** Commits the decision. @returns the work to do; undefined when no data is missing. */
  async begin(caller: Caller, databaseId: string): Promise<(() => Promise<void>) | undefined> {
    const { store, clock, home } = this.#deps
    const event = { action: 'Accept Data Loss', entity: databaseId, details: {} } as const
    const now = clock.now()
    const audit = auditRow(caller, event, now)
    const begun = store.run(databasesData.beginAccept, { accountId: caller.accountId, databaseId, home, audit })
    const outcome = await this.#lost.watch(databaseId, begun, now)
    switch (outcome.kind) {
      case 'begun':
        this.#lost.forget(databaseId)
        return () => this.#restores.holding(databaseId, () => this.#carryOut(outcome.database))
      case 'whole':
        return undefined
      case 'not_found':
      case 'busy':
      case 'plan':
      case 'too_many':
        return refuse(outcome, databaseId)
      default:
        return unreachable(outcome)
    }
  }

  /** Gives acceptances up whose commit got no answer; the owner can accept the loss again. */
  async settleUnconfirmed(): Promise<void> {
    const { store, clock } = this.#deps
    for (const databaseId of this.#lost.recent(clock.now())) await store.run(databasesData.giveUpAccept, { databaseId })
  }

  async #carryOut(database: DatabaseRow): Promise<void> {
    const { fleet, plans, sleep, onReplaced } = this.#deps
    const { database_id: databaseId } = database
    const spec = engineSpecOf(database, plans, this.#deps.only)
    try {
      sleep.reportStarted(databaseId)
      if (!(await this.#serves(spec))) {
        await fleet.ensure({ ...spec, state: 'stopped' })
        await fleet.acceptLoss(spec)
        await fleet.ensure(spec, 'while-loading')
      }
    } catch (error) {
      await this.#end(databaseId, 'failed')
      throw error
    }
    await this.#end(databaseId, 'accepted')
    await this.#deps.withdraw(databaseId)
    onReplaced(databaseId)
  }

  /**
   * Whether the data can be served as it is, so that nothing more is lost: the rest of a cut log can be served, missing
   * files may be back, or an acceptance that failed before may have removed the damage.
   */
  async #serves(spec: EngineSpec): Promise<boolean> {
    try {
      await this.#deps.fleet.ensure(spec, 'while-loading')
      return true
    } catch (error) {
      if (isError(error, 'data_missing') || isError(error, 'data_unreadable')) return false
      throw error
    }
  }

  #end(databaseId: string, outcome: 'accepted' | 'failed'): Promise<unknown> {
    const { store } = this.#deps
    return retryUntilDone(this.#deps, databaseId, () => store.run(databasesData.endAccept, { databaseId, outcome }))
  }
}
