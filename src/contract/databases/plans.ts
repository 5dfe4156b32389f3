import { type Static, Type } from 'typebox'

const MIB = 2 ** 20
const GIB = 2 ** 30

/** The value that means "no limit": the largest integer that every JSON client reads exactly. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER

/** All plans, in the order of error texts and documentation. */
export const PLAN_NAMES = [
  'free',
  'payg',
  'fixed_250mb',
  'fixed_1gb',
  'fixed_5gb',
  'fixed_10gb',
  'fixed_50gb',
  'fixed_100gb',
  'fixed_500gb',
] as const

/** The name of a plan. */
export type PlanName = (typeof PLAN_NAMES)[number]

/** All resource tiers. */
export const RESOURCE_SIZES = ['S', 'M', 'L', 'XL', 'XXL', '3XL'] as const

const limit = (description: string) => Type.Integer({ minimum: 1, maximum: NO_LIMIT, description })
const dollars = (description: string) => Type.Number({ minimum: 0, maximum: 1_000_000, description })

/** Nanoseconds per millisecond, for the durations of a plan. */
export const NS_PER_MS = 1_000_000

/** One row of the plan table. Sizes are bytes, durations nanoseconds, prices US dollars. */
export const PlanSchema = Type.Object(
  {
    db_resource_size: Type.Enum([...RESOURCE_SIZES]),
    db_max_clients: limit('Most client connections at a time.'),
    db_max_request_size: limit('Largest request and reply, bytes.'),
    db_max_entry_size: limit('Largest value of one key, bytes.'),
    db_disk_threshold: limit('Largest size on disk, bytes.'),
    db_memory_threshold: limit('Largest size in memory, bytes.'),
    db_max_commands_per_second: limit('Commands per second; commands beyond this rate wait.'),
    db_request_limit: limit('Commands per calendar month (UTC).'),
    db_conn_idle_timeout: limit('Idle connections are closed after this time, nanoseconds.'),
    db_lua_timeout: limit('Longest run of one script, nanoseconds.'),
    db_lua_credits_per_min: limit('Script time per minute, nanoseconds.'),
    db_store_max_idle: limit('A database without requests falls asleep after this time, nanoseconds.'),
    db_max_loads_per_sec: limit('Entries read from disk per second.'),
    max_bandwidth_per_month: limit(
      'Bytes in and out per calendar month (UTC); beyond this limit commands are slowed down.',
    ),
    max_read_regions: Type.Integer({ minimum: 0, maximum: 100, description: 'Most read regions.' }),
    price_per_month: dollars('Fixed price per month.'),
    price_per_100k_commands: dollars('Price per 100,000 commands.'),
    price_per_gb_month: dollars('Price per GB stored for a month, after the first GB.'),
  },
  { additionalProperties: false },
)

/** The limits and prices of one plan. */
export type Plan = Static<typeof PlanSchema>

/** The plans that a server offers. */
export type PlanTable = Readonly<Record<PlanName, Plan>>

const SECOND_NS = 1_000 * NS_PER_MS
const MINUTE_NS = 60 * SECOND_NS

const COMMON = {
  db_conn_idle_timeout: 6 * 60 * MINUTE_NS,
  db_lua_timeout: SECOND_NS / 4,
  db_lua_credits_per_min: 10 * SECOND_NS,
  db_store_max_idle: 15 * MINUTE_NS,
  db_max_loads_per_sec: 1_000_000,
  db_max_clients: 10_000,
  db_max_commands_per_second: 10_000,
  db_request_limit: NO_LIMIT,
  max_bandwidth_per_month: NO_LIMIT,
  max_read_regions: 100,
  price_per_100k_commands: 0,
  price_per_gb_month: 0,
}

interface Sizes {
  readonly tier: Plan['db_resource_size']
  readonly dataBytes: number
  readonly requestBytes: number
  readonly entryBytes: number
  /** In and out per month, GiB. */
  readonly bandwidthGib: number
}

function fixedPlan({ tier, dataBytes, requestBytes, entryBytes, bandwidthGib }: Sizes, pricePerMonth: number): Plan {
  return {
    ...COMMON,
    db_resource_size: tier,
    db_max_request_size: requestBytes,
    db_max_entry_size: entryBytes,
    db_disk_threshold: dataBytes,
    db_memory_threshold: dataBytes,
    max_bandwidth_per_month: bandwidthGib * GIB,
    price_per_month: pricePerMonth,
  }
}

const FAST = { db_max_commands_per_second: 16_000 }

const size = (
  tier: Sizes['tier'],
  dataBytes: number,
  requestMib: number,
  entryBytes: number,
  bandwidthGib: number,
): Sizes => ({ tier, dataBytes, requestBytes: requestMib * MIB, entryBytes, bandwidthGib })

/** The default plans. */
export const DEFAULT_PLANS: PlanTable = {
  free: {
    ...fixedPlan(size('S', 256 * MIB, 10, 100 * MIB, 10), 0),
    db_max_clients: 1000,
    db_memory_threshold: 64 * MIB,
    db_request_limit: 500_000,
    max_read_regions: 1,
  },
  payg: {
    ...fixedPlan(size('L', 100 * GIB, 10, 100 * MIB, 0), 0),
    db_memory_threshold: 3 * GIB,
    max_bandwidth_per_month: NO_LIMIT,
    price_per_100k_commands: 0.2,
    price_per_gb_month: 0.25,
  },
  fixed_250mb: { ...fixedPlan(size('S', 250 * MIB, 10, 100 * MIB, 50), 10), db_max_clients: 1000 },
  fixed_1gb: fixedPlan(size('M', GIB, 10, 200 * MIB, 100), 20),
  fixed_5gb: fixedPlan(size('L', 5 * GIB, 20, 300 * MIB, 500), 100),
  fixed_10gb: fixedPlan(size('XL', 10 * GIB, 30, 400 * MIB, 1024), 200),
  fixed_50gb: fixedPlan(size('XXL', 50 * GIB, 50, 500 * MIB, 5 * 1024), 400),
  fixed_100gb: { ...fixedPlan(size('3XL', 100 * GIB, 75, GIB, 10 * 1024), 800), ...FAST },
  fixed_500gb: { ...fixedPlan(size('3XL', 500 * GIB, 100, 5 * GIB, 20 * 1024), 1500), ...FAST },
}
