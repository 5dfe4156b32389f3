/** The filters and the order of the list of databases: in the URL, as choices, and as a query. */
import { SUMMARY_ORDERS, type SummariesQuery, type SummaryOrder } from '../../../../src/contract/console/console.js'
import { DATABASE_STATES, PAYMENT_TYPES } from '../../../../src/contract/databases/databases.js'
import { PRIMARY_REGIONS } from '../../../../src/contract/databases/regions.js'
import { DATABASE_WORDS } from '../../../../src/contract/words/states.js'
import { type Order, orderAt } from '../../components/sorting.js'
import { given, textAt } from '../../lib/search.js'
import { titleOf } from '../../lib/states.js'

/** A choice of a filter. */
export interface Choice<Value extends string> {
  readonly value: Value
  readonly label: string
}

const MIB = 2 ** 20
const DAY_SECONDS = 86_400

/** Sizes to filter by. */
export const SIZES = [
  { value: 'empty', label: 'Empty', query: { max_storage_bytes: 0 } },
  { value: 'some', label: 'Not empty', query: { min_storage_bytes: 1 } },
  { value: '1mb', label: '1 MB or more', query: { min_storage_bytes: MIB } },
  { value: '100mb', label: '100 MB or more', query: { min_storage_bytes: 100 * MIB } },
  { value: '1gb', label: '1 GB or more', query: { min_storage_bytes: 1024 * MIB } },
] as const

/** Requests of this month to filter by. */
export const USES = [
  { value: 'none', label: 'No requests', query: { max_requests: 0 } },
  { value: 'some', label: 'Some requests', query: { min_requests: 1 } },
  { value: '10k', label: '10,000 or more', query: { min_requests: 10_000 } },
  { value: '1m', label: '1 million or more', query: { min_requests: 1_000_000 } },
] as const

/** Ages to filter by. */
export const AGES = [
  { value: 'day', label: 'Last 24 hours', days: 1 },
  { value: 'week', label: 'Last 7 days', days: 7 },
  { value: 'month', label: 'Last 30 days', days: 30 },
  { value: 'older', label: 'Before that', days: undefined },
] as const

/** States to filter by, in the words of the list. */
export const STATE_CHOICES: readonly Choice<(typeof DATABASE_STATES)[number]>[] = DATABASE_STATES.map((value) => ({
  value,
  label: titleOf(DATABASE_WORDS[value]).title,
}))

/** Kinds of plans to filter by. */
export const PLAN_CHOICES: readonly Choice<(typeof PAYMENT_TYPES)[number]>[] = [
  { value: 'free', label: 'Free' },
  { value: 'payg', label: 'Pay as you go' },
  { value: 'paid', label: 'Fixed' },
  { value: 'pro', label: 'Production pack' },
]

const choiceAt = <Value extends string>(text: unknown, choices: readonly { readonly value: Value }[]) =>
  choices.find(({ value }) => value === text)?.value
const oneAt = <Value extends string>(text: unknown, known: readonly Value[]) => known.find((value) => value === text)

/** Reads the filters of a URL. */
function filtersAt(search: Record<string, unknown>) {
  return given({
    search: textAt(search, 'search'),
    state: oneAt(search.state, DATABASE_STATES),
    region: oneAt(search.region, PRIMARY_REGIONS),
    plan: oneAt(search.plan, PAYMENT_TYPES),
    size: choiceAt(search.size, SIZES),
    use: choiceAt(search.use, USES),
    created: choiceAt(search.created, AGES),
  })
}

/** The filters of the list. */
export type ListFilters = ReturnType<typeof filtersAt>

/** The filters and the order in the URL. The order is such as `size` or `-size`. */
export type ListSearch = ListFilters & { readonly sort?: string }

/** Reads filters and order of a URL. */
export function listSearchAt(search: Record<string, unknown>): ListSearch {
  const sort = oneAt(search.sort, SORTS)
  return { ...filtersAt(search), ...(sort !== undefined && { sort }) }
}

const SORTS: readonly string[] = SUMMARY_ORDERS.flatMap((order) => [order, `-${order}`])

/** The order in the URL. Default: the oldest database first. */
export const orderOf = ({ sort }: ListSearch): Order<SummaryOrder> =>
  orderAt(sort, SUMMARY_ORDERS) ?? { by: 'created', direction: 'asc' }

/** The query of filters and order. */
export function queryOf(list: ListSearch, nowMs: number): SummariesQuery {
  const { search, state, region, plan, size, use, created } = list
  const { by, direction } = orderOf(list)
  return {
    ...given({ search, state, region, type: plan }),
    ...SIZES.find(({ value }) => value === size)?.query,
    ...USES.find(({ value }) => value === use)?.query,
    ...ageQuery(created, nowMs),
    ...(by !== 'created' && { sort: by }),
    ...(direction === 'desc' && { direction }),
  }
}

function ageQuery(created: ListFilters['created'], nowMs: number): SummariesQuery {
  const age = AGES.find(({ value }) => value === created)
  if (age === undefined) return {}
  const before = (days: number): number => Math.max(0, Math.floor(nowMs / 1000) - days * DAY_SECONDS)
  return age.days === undefined ? { created_before: before(30) } : { created_after: before(age.days) }
}
