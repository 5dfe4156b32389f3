import type { ChangePlanBody } from '../../contract/databases/changes.js'
import { PLAN_NAMES, type PlanName, type PlanTable } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { dataBoundOf, planNameOf, planOf, readRegionsOf } from '../desired-engine.js'
import type { DatabaseRow, DesiredChange } from '../lifecycle.js'
import { readRegionProblems } from '../rules.js'

/** A request for another plan, with its alternative spellings normalised. */
export interface DesiredPlan {
  readonly plan?: NonNullable<ChangePlanBody['plan']>
  readonly autoUpgrade?: boolean
  readonly productionPack?: boolean
}

/** What a plan change depends on besides the row. */
export interface PlanContext {
  readonly plans: PlanTable
  readonly accountType: 'free' | 'paid'
  readonly nowMs: number
  /** Size of the data set, bytes. Called only when the decision needs it. */
  readonly usedBytes: () => Promise<number>
}

/**
 * Reads a request for another plan.
 * @throws HomeportError `invalid_request` when it names no plan, two, or another database.
 */
export function readDesiredPlan(databaseId: string, body: ChangePlanBody): DesiredPlan {
  const { plan_name, plan, auto_upgrade, prod_pack_enabled, database_id } = body
  const problems: string[] = []
  if (plan_name === undefined && plan === undefined) {
    problems.push(`\`plan_name\` is required: one of ${PLAN_NAMES.join(', ')}.`)
  }
  if (plan_name !== undefined && plan !== undefined && plan_name !== plan) {
    problems.push(`\`plan_name\` is "${plan_name}", but \`plan\` is "${plan}". Send one of them.`)
  }
  if (database_id !== undefined && database_id !== databaseId) {
    problems.push('`database_id` is not the database of the path. Leave it out, or send the same.')
  }
  if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
  const named = plan_name ?? plan
  return {
    ...(named === undefined ? {} : { plan: named }),
    ...(auto_upgrade === undefined ? {} : { autoUpgrade: auto_upgrade }),
    ...(prod_pack_enabled === undefined ? {} : { productionPack: prod_pack_enabled }),
  }
}

/**
 * Resolves what a database becomes with another plan or the production pack. Plan `free` ends the pack.
 * @throws HomeportError `plan_too_small`, `plan_not_allowed`, `production_pack_not_allowed`, `invalid_request`.
 */
export async function resolvePlanChange(
  row: DatabaseRow,
  desired: DesiredPlan,
  on: PlanContext,
): Promise<DesiredChange> {
  const plan = await resolvePlan(row, desired, on)
  if (on.accountType === 'free' && plan !== 'free') throw new HomeportError('plan_not_allowed', { plan })
  const productionPack = resolvePack(row, desired, plan)
  refuseRegions(row, plan, on.plans)
  await refuseTooSmall(row, plan, on)
  const isUpgrade = dataBoundOf(on.plans[plan]) > dataBoundOf(planOf(row, on.plans))
  const autoUpgrade = desired.autoUpgrade === undefined ? row.auto_upgrade : desired.autoUpgrade ? 1 : 0
  return {
    set: {
      plan,
      production_pack: productionPack,
      auto_upgrade: autoUpgrade,
      ...(isUpgrade ? { last_upgrade_at: on.nowMs } : {}),
    },
    action: desired.plan === undefined ? 'Change Database Production Pack' : 'Change Database Plan',
    details: { from: row.plan, plan, prod_pack_enabled: productionPack === 1, auto_upgrade: autoUpgrade === 1 },
  }
}

async function resolvePlan(row: DatabaseRow, { plan }: DesiredPlan, on: PlanContext): Promise<PlanName> {
  const present = planNameOf(row)
  if (plan === undefined || plan === 'pro') return present === 'free' && plan === 'pro' ? 'payg' : present
  if (plan !== 'paid') return plan
  return isFixed(present) ? present : smallestFixed(await on.usedBytes(), on.plans)
}

const isFixed = (plan: PlanName): boolean => plan.startsWith('fixed_')

/** The largest when none is large enough: `refuseTooSmall` then names both sizes. */
function smallestFixed(usedBytes: number, plans: PlanTable): PlanName {
  const fixed = PLAN_NAMES.filter(isFixed)
  return fixed.find((plan) => dataBoundOf(plans[plan]) >= usedBytes) ?? 'fixed_500gb'
}

function resolvePack(row: DatabaseRow, desired: DesiredPlan, plan: PlanName): 0 | 1 {
  const requested = desired.productionPack ?? (desired.plan === 'pro' ? true : undefined)
  if (plan !== 'free') return requested === undefined ? row.production_pack : requested ? 1 : 0
  if (requested) throw new HomeportError('production_pack_not_allowed', { plan })
  return 0
}

function refuseRegions(row: DatabaseRow, plan: PlanName, plans: PlanTable): void {
  const { platform, primary_region: primaryRegion } = row
  const problems = readRegionProblems({ readRegions: readRegionsOf(row), platform, primaryRegion, plan }, plans)
  if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
}

async function refuseTooSmall(row: DatabaseRow, plan: PlanName, on: PlanContext): Promise<void> {
  const limitBytes = dataBoundOf(on.plans[plan])
  if (limitBytes >= dataBoundOf(planOf(row, on.plans))) return
  const dataBytes = await on.usedBytes()
  if (dataBytes > limitBytes) throw new HomeportError('plan_too_small', { plan, dataBytes, limitBytes })
}
