/** The form of a new database: its values, what is wrong with them, and the request that they become. */
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

/** What is wrong with each field; `null` for what is right. The same rules as the server's, told while typing. */
export const CREATE_RULES = {
  name: (name: string): string | null => {
    const length = name.trim().length
    if (length === 0) return 'Give the database a name'
    if (length > LONGEST_NAME) return `At most ${LONGEST_NAME} characters, found ${length}`
    return /\p{Cc}/u.test(name) ? 'Leave out control characters' : null
  },
  budget: (budget: number | ''): string | null =>
    budget === '' || (Number.isInteger(budget) && budget >= 0 && budget <= MOST_BUDGET)
      ? null
      : `Whole US dollars, at most ${MOST_BUDGET.toLocaleString('en-US')}`,
  reads: (reads: readonly ReadRegion[], { plan }: CreateValues): string | null =>
    plan === 'free' && reads.length > 1 ? 'The plan Free has at most one read region' : null,
}

/** The read regions that go with a choice: none on gcp, and never the primary region. */
export const readRegionsFor = ({ platform, primary }: Pick<CreateValues, 'platform' | 'primary'>): ReadRegion[] =>
  platform === 'gcp' ? [] : READ_REGIONS.filter((region) => region !== primary)

/** The values after another platform was chosen: what does not go with it is replaced. */
export function onPlatform(values: CreateValues, platform: Platform): CreateValues {
  const [first = values.primary] = regionsOf(platform)
  return { ...values, platform, primary: first, reads: [] }
}

/** The values after another primary region was chosen. */
export const onPrimary = (values: CreateValues, primary: Region): CreateValues => ({
  ...values,
  primary,
  reads: values.reads.filter((region) => region !== primary),
})

/** The request of a creation. */
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

/** How a field for a budget takes it: whole US dollars. */
export const BUDGET_FIELD = {
  placeholder: 'No budget',
  prefix: '$',
  thousandSeparator: ',',
  allowDecimal: false,
  min: 0,
  max: MOST_BUDGET,
} as const
