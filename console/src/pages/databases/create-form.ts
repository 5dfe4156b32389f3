/** The form of a new database: values, validation, and the request. */
import { type CreateDatabaseBody, LONGEST_NAME, MOST_BUDGET } from '../../../../src/contract/databases/databases.js'
import type { PlanName } from '../../../../src/contract/databases/plans.js'
import {
  type Platform,
  READ_REGIONS,
  type ReadRegion,
  type Region,
  regionsOf,
} from '../../../../src/contract/databases/regions.js'

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

/** The values after the platform changed: values that do not fit it are replaced. */
export function onPlatform(values: CreateValues, platform: Platform, served?: readonly Region[]): CreateValues {
  const [first = values.primary] = primaryRegionsFor(platform, served)
  return { ...values, platform, primary: first, reads: [] }
}

/** The values after the primary region changed. */
export const onPrimary = (values: CreateValues, primary: Region): CreateValues => ({
  ...values,
  primary,
  reads: values.reads.filter((region) => region !== primary),
})

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
