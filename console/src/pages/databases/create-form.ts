/** The form of a new database: values, validation, and the request. */
import { type CreateDatabaseBody, LONGEST_NAME, MOST_BUDGET } from '../../../../src/contract/databases/databases.js'
import type { PlanName } from '../../../../src/contract/databases/plans.js'
import {
  type Platform,
  READ_REGIONS,
  REGIONS,
  type ReadRegion,
  type Region,
  regionsOf,
} from '../../../../src/contract/databases/regions.js'
import { counted, dollars } from '../../lib/format.js'

/** What the form holds. */
export interface CreateValues {
  readonly name: string
  readonly platform: Platform
  readonly primary: Region
  readonly reads: readonly ReadRegion[]
  readonly plan: PlanName
  /** Empty: no budget. */
  readonly budget: number | ''
  readonly eviction: boolean
  readonly tls: boolean
}

/** The error of each field; `null` for valid values. The rules are those of the server, checked while typing. */
export const CREATE_RULES = {
  name: (name: string): string | null => {
    const length = name.trim().length
    if (length === 0) return 'Enter a name for the database'
    if (length > LONGEST_NAME) return `At most ${LONGEST_NAME} characters, found ${length}`
    return /\p{Cc}/u.test(name) ? 'Control characters are not allowed' : null
  },
  budget: (budget: number | ''): string | null =>
    budget === '' || (Number.isInteger(budget) && budget >= 0 && budget <= MOST_BUDGET)
      ? null
      : `Whole US dollars, at most ${MOST_BUDGET.toLocaleString('en-US')}`,
  reads: (reads: readonly ReadRegion[], { plan }: CreateValues): string | null =>
    plan === 'free' && reads.length > 1 ? 'The Free plan has at most one read region' : null,
}

/** The regions of a platform that a node serves. @param served the regions of all nodes; absent: all are served. */
export const primaryRegionsFor = (platform: Platform, served: readonly Region[] | undefined): Region[] =>
  regionsOf(platform).filter((region) => served?.includes(region) ?? true)

/** The read regions that can be selected: none on GCP, never the primary region, and only those that a node serves. */
export const readRegionsFor = (
  { platform, primary }: Pick<CreateValues, 'platform' | 'primary'>,
  served?: readonly Region[],
): ReadRegion[] =>
  platform === 'gcp' ? [] : READ_REGIONS.filter((region) => region !== primary && (served?.includes(region) ?? true))

/** The values after the primary region changed: read regions that do not fit it are removed. */
export function onPrimary(values: CreateValues, primary: Region): CreateValues {
  const { platform } = REGIONS[primary]
  const possible: readonly Region[] = readRegionsFor({ platform, primary })
  return { ...values, platform, primary, reads: values.reads.filter((region) => possible.includes(region)) }
}

/** Whether commands are counted in US dollars. */
export const hasBudget = ({ budget }: Pick<CreateValues, 'budget'>): boolean => budget !== '' && budget > 0

/** Whether a field is hidden until the form shows more. */
export const isUnderMore = (field: string): boolean => field !== 'name' && field !== 'primary'

/** The hidden settings in one line. */
export function summaryOf({ reads, budget, eviction, tls }: CreateValues, plan: string): string {
  return [
    `Plan ${plan}`,
    budget === '' || budget === 0 ? 'no budget' : `budget ${dollars(budget)}`,
    reads.length === 0 ? 'no read regions' : counted(reads.length, 'read region'),
    `eviction ${eviction ? 'on' : 'off'}`,
    `TLS ${tls ? 'on' : 'off'}`,
  ].join(', ')
}

/** The request that creates the database. */
export function bodyOf(values: CreateValues): CreateDatabaseBody {
  const { name, platform, primary, reads, plan, budget, eviction, tls } = values
  return {
    database_name: name.trim(),
    platform,
    primary_region: primary,
    ...(reads.length === 0 ? {} : { read_regions: [...reads] }),
    plan,
    ...(budget === '' || budget === 0 ? {} : { budget }),
    eviction,
    tls,
  }
}

/** The properties of a budget field: whole US dollars. */
export const BUDGET_FIELD = {
  placeholder: 'No budget',
  prefix: '$',
  thousandSeparator: ',',
  allowDecimal: false,
  min: 0,
  max: MOST_BUDGET,
} as const
