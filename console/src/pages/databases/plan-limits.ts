/** The limits of a plan as names with values. */
import type { OfferedPlan } from '../../../../src/contract/console/console.js'
import { NO_LIMIT } from '../../../../src/contract/databases/plans.js'
import { bytes, short, whole } from '../../lib/format.js'

/** One limit of a plan. */
export interface PlanLimit {
  readonly name: string
  readonly value: string
}

/** The limits of a plan that a user of a database can reach. Limits that the plan does not have are left out. */
export function limitsOf(plan: OfferedPlan): PlanLimit[] {
  const some = (name: string, value: number, show: (value: number) => string): PlanLimit[] =>
    value >= NO_LIMIT ? [] : [{ name, value: show(value) }]
  return [
    ...some('Memory', plan.db_memory_threshold, bytes),
    ...some('Disk', plan.db_disk_threshold, bytes),
    ...some('Commands per second', plan.db_max_commands_per_second, whole),
    ...some('Connections', plan.db_max_clients, whole),
    ...some('Largest request', plan.db_max_request_size, bytes),
    ...some('Largest value', plan.db_max_entry_size, bytes),
    ...some('Commands per month', plan.db_request_limit, short),
    ...some('Traffic per month', plan.max_bandwidth_per_month, bytes),
    ...some('Read regions', plan.max_read_regions, whole),
  ]
}
