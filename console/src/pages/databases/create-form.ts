/** The form of a new database: values, validation, and the request. */
import { type CreateDatabaseBody, MAX_BUDGET, MAX_NAME_LENGTH } from '../../../../src/contract/databases/databases.js'
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
import { planTitle } from './words.js'

/** The values of the form. */
export interface CreateValues {
  readonly name: string
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
    if (length > MAX_NAME_LENGTH) return `At most ${MAX_NAME_LENGTH} characters, found ${length}`
    return /\p{Cc}/u.test(name) ? 'Control characters are not allowed' : null
  },
  budget: (budget: number | ''): string | null =>
    budget === '' || (Number.isInteger(budget) && budget >= 0 && budget <= MAX_BUDGET)
      ? null
      : `Whole US dollars, at most ${MAX_BUDGET.toLocaleString('en-US')}`,
  reads: (reads: readonly ReadRegion[], { plan }: CreateValues): string | null =>
    plan === 'free' && reads.length > 1 ? 'The Free plan has at most one read region' : null,
}

/** The regions of a platform that a node serves. @param served the regions of all nodes; absent: all are served. */
export const primaryRegionsFor = (platform: Platform, served: readonly Region[] | undefined): Region[] =>
  regionsOf(platform).filter((region) => served?.includes(region) ?? true)

/** The read regions that can be selected: none on GCP, never the primary region, and only those that a node serves. */
export const readRegionsFor = (primary: Region, served?: readonly Region[]): ReadRegion[] =>
  REGIONS[primary].platform === 'gcp'
    ? []
    : READ_REGIONS.filter((region) => region !== primary && (served?.includes(region) ?? true))

/** The values after the primary region changed: read regions that do not fit it are dropped. */
export function onPrimary(values: CreateValues, primary: Region): CreateValues {
  const offered: readonly Region[] = readRegionsFor(primary)
  return { ...values, primary, reads: values.reads.filter((region) => offered.includes(region)) }
}

/** The fields under "More settings". */
const MORE_FIELDS = ['plan', 'reads', 'budget', 'eviction', 'tls'] as const satisfies readonly (keyof CreateValues)[]

/** Whether a field under "More settings" has an error. */
export const hasMoreSettingsError = (errors: Readonly<Record<string, unknown>>): boolean =>
  MORE_FIELDS.some((field) => errors[field] !== undefined && errors[field] !== null)

const NAMED_FIELDS: readonly (readonly [RegExp, keyof CreateValues])[] = [
  [/`database_name`/, 'name'],
  [/`primary_region`/, 'primary'],
  [/`read_regions`/, 'reads'],
  [/\bbudget\b/i, 'budget'],
  [/\bplan\b/i, 'plan'],
]

/** The field that a refusal of the server names; `undefined` if it names none. */
export const refusedField = (message: string): keyof CreateValues | undefined =>
  NAMED_FIELDS.find(([named]) => named.test(message))?.[1]

/** The settings under "More settings" in one line. */
export function moreSettingsText({ plan, reads, budget, eviction, tls }: CreateValues): string {
  return [
    `Plan ${planTitle(plan)}`,
    reads.length === 0 ? 'no read regions' : counted(reads.length, 'read region'),
    budget === '' || budget === 0 ? 'no budget' : `${dollars(budget)} a month`,
    eviction ? 'evicts keys when full' : 'refuses writes when full',
    tls ? 'TLS' : 'no TLS',
  ].join(' · ')
}

/** The request that creates the database. */
export function bodyOf(values: CreateValues): CreateDatabaseBody {
  const { name, primary, reads, plan, budget, eviction, tls } = values
  return {
    database_name: name.trim(),
    platform: REGIONS[primary].platform,
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
  max: MAX_BUDGET,
} as const
