import { createDatabase, MAX_BUDGET } from '../../contract/databases/databases.js'
import { PLAN_NAMES, type PlanName } from '../../contract/databases/plans.js'
import { PLATFORMS, PRIMARY_REGIONS, READ_REGIONS, REGIONS } from '../../contract/databases/regions.js'
import { misused } from '../errors.js'
import { remote } from '../remote/remote.js'
import { given, list, oneOf, wholeNumber } from '../remote/values.js'
import { databaseFacts } from './view.js'

type PrimaryRegion = (typeof PRIMARY_REGIONS)[number]
type ReadRegion = (typeof READ_REGIONS)[number]

interface CreateOptions {
  readonly name: string
  readonly platform?: (typeof PLATFORMS)[number]
  readonly region: PrimaryRegion
  readonly readRegions?: readonly string[]
  readonly plan?: PlanName
  readonly budget?: number
  readonly eviction?: boolean
  readonly tls?: boolean
  readonly idempotencyKey?: string
}

/** `homeport db create`. */
export const createCommand = remote<CreateOptions>({
  name: 'create',
  summary: 'create a database, and wait until it serves in all its regions',
  flags: (command) =>
    command
      .requiredOption('--name <name>', 'name of the database; need not be unique')
      .option(
        '--region <region>',
        `the region that accepts writes: ${PRIMARY_REGIONS.join(', ')}`,
        oneOf(PRIMARY_REGIONS),
        'us-east-1',
      )
      .option('--platform <platform>', 'aws or gcp (default: the platform of the region)', oneOf(PLATFORMS))
      .option('--read-regions <regions>', 'regions with a replica, separated by commas', list)
      .option(
        '--plan <plan>',
        `${PLAN_NAMES.join(', ')} (default: payg, or free for a free account)`,
        oneOf(PLAN_NAMES),
      )
      .option('--budget <dollars>', 'US dollars per month; 0 for no budget', wholeNumber(0, MAX_BUDGET))
      .option('--eviction', 'evict least recently used keys when the database is full')
      .option('--tls', 'enable TLS on the Redis port')
      .option('--no-tls', 'no TLS, whatever the default of the server is')
      .option('--idempotency-key <text>', 'a repeated request with this key returns the same database'),
  examples: [
    'homeport db create --name shop',
    'homeport db create --name world --region us-east-1 --read-regions eu-west-1,ap-south-1 --plan fixed_1gb --budget 50',
  ],
  run: async ({ api, io, show, say }, options) => {
    const { idempotencyKey } = options
    say(`creating ${options.name} ...`)
    const headers = given({ 'idempotency-key': idempotencyKey })
    const record = await api.call(createDatabase, { body: bodyOf(options), headers })
    show(record, () => databaseFacts(io, record))
  },
})

function bodyOf({ name, region, platform, readRegions, plan, budget, eviction, tls }: CreateOptions) {
  const optional = { read_regions: readRegions?.map(checkReadRegion), plan, budget, eviction, tls }
  return {
    database_name: name,
    platform: platform ?? REGIONS[region].platform,
    primary_region: region,
    ...given(optional),
  }
}

/** Checks a read region. @throws HomeportError `cli_misused` for a region that cannot have a replica. */
export function checkReadRegion(text: string): ReadRegion {
  const found = READ_REGIONS.find((region) => region === text)
  if (found !== undefined) return found
  const problem = `"${text}" is not a read region. Read regions: ${READ_REGIONS.join(', ')}. Nothing was changed.`
  throw misused(problem)
}
