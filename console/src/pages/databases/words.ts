/** Texts and colours for the fields of a database. */
import type { OfferedPlan, RegionStatus } from '../../../../src/contract/console/console.js'
import type { AwakeRecord } from '../../../../src/contract/databases/awake.js'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import type { PlanName } from '../../../../src/contract/databases/plans.js'
import type { Region } from '../../../../src/contract/databases/regions.js'
import { planWords } from '../../../../src/contract/words/plans.js'
import { bytes, duration } from '../../lib/format.js'
import { capital } from '../../lib/states.js'

const PLAN_TITLES: Readonly<Record<PlanName, string>> = {
  free: 'Free',
  payg: 'Pay as you go',
  fixed_250mb: 'Fixed 250 MB',
  fixed_1gb: 'Fixed 1 GB',
  fixed_5gb: 'Fixed 5 GB',
  fixed_10gb: 'Fixed 10 GB',
  fixed_50gb: 'Fixed 50 GB',
  fixed_100gb: 'Fixed 100 GB',
  fixed_500gb: 'Fixed 500 GB',
}

/** The display name of a plan. */
export const planTitle = (plan: PlanName): string => PLAN_TITLES[plan]

/** The plan of a record. */
export const paymentTitle = ({ type, db_disk_threshold }: Pick<DatabaseRecord, 'type' | 'db_disk_threshold'>): string =>
  capital(planWords(type, db_disk_threshold))

/** Whether the caller may connect: the role finance sees no credentials. */
export const hasCredentials = ({ rest_token, read_only_rest_token }: DatabaseRecord): boolean =>
  rest_token !== undefined || read_only_rest_token !== undefined

const PLACES: Readonly<Record<Region, string>> = {
  'us-east-1': 'N. Virginia',
  'us-east-2': 'Ohio',
  'us-west-1': 'N. California',
  'us-west-2': 'Oregon',
  'ca-central-1': 'Montréal',
  'eu-central-1': 'Frankfurt',
  'eu-west-1': 'Ireland',
  'eu-west-2': 'London',
  'sa-east-1': 'São Paulo',
  'ap-south-1': 'Mumbai',
  'ap-northeast-1': 'Tokyo',
  'ap-southeast-1': 'Singapore',
  'ap-southeast-2': 'Sydney',
  'af-south-1': 'Cape Town',
  'us-central1': 'Iowa',
  'us-east4': 'N. Virginia',
  'europe-west1': 'Belgium',
  'asia-northeast1': 'Tokyo',
}

/** Where a region is. */
export const placeOf = (region: Region): string => PLACES[region]

/** A region as a choice of a field. */
export const regionChoice = <Name extends Region>(region: Name) => ({
  value: region,
  label: `${region} · ${placeOf(region)}`,
})

const REASONS: Readonly<Record<AwakeRecord['reasons'][number]['kind'], string>> = {
  creation: 'it is being created',
  change: 'it is being changed',
  backup: 'a backup is being created',
  restore: 'a backup is being restored',
  import: 'an import is running',
  blocking: 'blocking commands are waiting',
  subscription: 'clients are subscribed',
  monitor: 'clients watch with MONITOR',
  tracking: 'clients track their keys',
  transaction: 'transactions are open',
  request: 'it was used just now',
}

/** The reasons why a database is awake, or what wakes it. */
export function awakeText({ awake, reasons }: AwakeRecord): string {
  if (!awake) return 'the next request wakes it'
  return reasons.map(({ kind }) => REASONS[kind]).join(', ') || 'it will sleep soon'
}

/** The plan of a database, derived from its kind of payment and its limits. */
export function planOf(database: DatabaseRecord, plans: readonly OfferedPlan[]): OfferedPlan | undefined {
  const { type, db_disk_threshold, db_memory_threshold, db_max_commands_per_second } = database
  if (type === 'free' || type === 'payg') return plans.find(({ plan }) => plan === type)
  return plans.find(
    (plan) =>
      plan.db_disk_threshold === db_disk_threshold &&
      plan.db_memory_threshold === db_memory_threshold &&
      plan.db_max_commands_per_second === db_max_commands_per_second,
  )
}

/** After this time without contact, the replication link counts as broken: the primary pings every 10 seconds. */
const SILENT_SECONDS = 30

/** The replication state of a region; `undefined` while it sleeps. */
export function regionText(status: RegionStatus | undefined): string {
  if (status === undefined) return 'asleep'
  const { state, role, lag_bytes, heard_seconds_ago = 0 } = status
  if (state !== 'serving') return state
  if (lag_bytes === undefined) return 'does not respond'
  if (role === 'primary') return 'handles the writes'
  if (heard_seconds_ago > SILENT_SECONDS) return `no contact with the primary for ${duration(heard_seconds_ago * 1000)}`
  return lag_bytes === 0 ? 'up to date' : `${bytes(lag_bytes)} behind`
}
