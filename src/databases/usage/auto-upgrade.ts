import { PLAN_NAMES, type Plan, type PlanName, type PlanTable } from '../../contract/databases/plans.js'
import { isError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import type { Logger } from '../../telemetry/index.js'
import { dataBoundOf, planNameOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import type { UsageLedger } from './ledger.js'
import { systemCaller } from './suspension.js'

/** Share of a limit at which a database moves to the next plan: before writes are refused or commands slowed down. */
const OUTGROWN_SHARE = 0.9

/** What `AutoUpgrade` is built from. */
export interface AutoUpgradeDeps {
  readonly plans: PlanTable
  readonly logger: Pick<Logger, 'info' | 'warn'>
  readonly changePlan: (caller: Caller, databaseId: string, plan: PlanName) => Promise<void>
}

/** Moves databases that outgrow their fixed plan to the next one. */
export class AutoUpgrade {
  readonly #deps: AutoUpgradeDeps
  readonly #active = new Map<string, Promise<void>>()

  constructor(deps: AutoUpgradeDeps) {
    this.#deps = deps
  }

  /** Starts moving a database to a larger plan, if auto upgrade is on and a limit is nearly used up. */
  consider(ledger: UsageLedger): void {
    const { row } = ledger
    const { plans } = this.#deps
    const limit = outgrownLimit(ledger, plans[planNameOf(row)])
    if (row.auto_upgrade === 0 || !limit || this.#active.has(row.database_id)) return
    const next = nextPlan(row, plans, limit)
    if (!next) return
    const work = this.#upgrade(row, next).finally(() => this.#active.delete(row.database_id))
    this.#active.set(row.database_id, work)
  }

  /** Waits for the active plan changes. */
  async stop(): Promise<void> {
    await Promise.all(this.#active.values())
  }

  /** A failed upgrade is retried after the next flush interval. */
  async #upgrade(row: DatabaseRow, plan: PlanName): Promise<void> {
    const { logger, changePlan } = this.#deps
    const facts = { databaseId: row.database_id, from: row.plan, plan }
    try {
      await changePlan(systemCaller(row.account_id), row.database_id, plan)
      logger.info('database_upgraded', facts)
    } catch (error) {
      if (isError(error, 'database_busy')) return
      logger.warn('database_upgrade_failed', { ...facts, error })
    }
  }
}

/** A limit of a plan, bytes. */
type Limit = (plan: Plan) => number

const bandwidthOf: Limit = (plan) => plan.max_bandwidth_per_month

/** The limit that a database has outgrown, if any. A full database with eviction needs no larger plan. */
function outgrownLimit(ledger: UsageLedger, plan: Plan): Limit | undefined {
  // Called first in any case, because it resets the count of refusals.
  const isRefused = ledger.refusedForSpace()
  const isFull = isRefused || ledger.usedBytes >= OUTGROWN_SHARE * dataBoundOf(plan)
  if (isFull && ledger.row.eviction === 0) return dataBoundOf
  return ledger.meter.monthBytes >= OUTGROWN_SHARE * bandwidthOf(plan) ? bandwidthOf : undefined
}

/** The smallest fixed plan with more of a limit than the fixed plan of a database. */
export function nextPlan(row: DatabaseRow, plans: PlanTable, limit: Limit = dataBoundOf): PlanName | undefined {
  const present = planNameOf(row)
  if (!isFixed(present)) return undefined
  const bound = limit(plans[present])
  return PLAN_NAMES.slice(PLAN_NAMES.indexOf(present) + 1).find((name) => isFixed(name) && limit(plans[name]) > bound)
}

const isFixed = (plan: PlanName): boolean => plan.startsWith('fixed_')
