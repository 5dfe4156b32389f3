import { type AuditEvent, auditRow } from '../../accounts/index.js'
import type { Clock } from '../../base/index.js'
import type { Caller } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import { type DatabaseRow, resume, suspend } from '../lifecycle.js'
import type { UsageLedger } from './ledger.js'

/** What `Suspension` is built from. */
export interface SuspensionDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** Stores the collected usage. */
  readonly write: () => Promise<void>
  /** Runs work on a database while no short change of it runs. */
  readonly inTurn: <Result>(databaseId: string, work: () => Promise<Result>) => Promise<Result>
  /** Publishes a changed row to the data plane. */
  readonly publish: (row: DatabaseRow) => Promise<void>
}

/** Suspends databases whose budget is spent, and resumes them when it suffices again. */
export class Suspension {
  readonly #deps: SuspensionDeps
  readonly #active = new Map<string, Promise<void>>()

  constructor(deps: SuspensionDeps) {
    this.#deps = deps
  }

  /**
   * Resolves when the state of a database matches its budget. Never rejects: a change that fails, or collides with another
   * one, is retried after the next flush interval. Until then the ledger refuses commands.
   */
  async settle(ledger: UsageLedger): Promise<void> {
    await this.#active.get(ledger.row.database_id)
    await this.begin(ledger)
  }

  /** Starts to settle the state, or joins a call that is active; resolves when it has settled. */
  begin(ledger: UsageLedger): Promise<void> {
    const databaseId = ledger.row.database_id
    const active = this.#active.get(databaseId)
    if (active) return active
    if (ledger.isBudgetSpent === (ledger.row.state === 'suspended')) return Promise.resolve()
    const work = this.#followBudget(ledger).finally(() => this.#active.delete(databaseId))
    this.#active.set(databaseId, work)
    return work
  }

  /** Waits for active changes of state. */
  async stop(): Promise<void> {
    await Promise.all(this.#active.values())
  }

  async #followBudget(ledger: UsageLedger): Promise<void> {
    const databaseId = ledger.row.database_id
    try {
      // Usage first: after a crash the store must not have the suspension without the usage that caused it.
      ledger.collect(this.#deps.clock.now())
      await this.#deps.write()
      await this.#deps.inTurn(databaseId, () => this.#applyTransition(ledger))
    } catch (error) {
      this.#deps.logger.warn('database_budget_not_applied', { databaseId, error })
    }
  }

  async #applyTransition(ledger: UsageLedger): Promise<void> {
    const { store, logger, publish } = this.#deps
    const { row, isBudgetSpent } = ledger
    if (isBudgetSpent === (row.state === 'suspended')) return
    const args = { databaseId: row.database_id, audit: this.#auditOf(row, isBudgetSpent) }
    const moved = await (isBudgetSpent ? suspend(store, args) : resume(store, args))
    if (!moved) return
    const facts = { databaseId: row.database_id, budget: row.budget }
    logger.info(isBudgetSpent ? 'database_budget_reached' : 'database_budget_free', facts)
    await publish(moved)
  }

  #auditOf(row: DatabaseRow, isBudgetSpent: boolean) {
    const action: AuditEvent['action'] = isBudgetSpent ? 'Suspend Database' : 'Resume Database'
    const event = { action, entity: row.database_id, details: { budget: row.budget } }
    return auditRow(systemCaller(row.account_id), event, this.#deps.clock.now())
  }
}

/** The source of changes by Homeport itself, in the audit log. */
export const SYSTEM = 'SYSTEM'

/** The caller when Homeport itself changes a database, as the owner's audit log shows it. */
export function systemCaller(accountId: string): Caller {
  return { accountId, email: 'homeport', accountType: 'paid', source: SYSTEM, access: 'write', ip: '' }
}
