import { type PostgresServer, startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { atCleanup } from './cleanup.js'
import { newPlace, type Place, type RunningHomeport, type StartOptions, startHomeport } from './homeport.js'
import { freePort } from './ports.js'
import { waitFor } from './wait-for.js'

/** A region that no test asks for: the node that tests talk to is not the home of any database. */
const REGION_OF_FIRST = 'ap-southeast-2'

/** One node of a cluster that a test talks to as to a server that is alone. */
export interface AmongNodes {
  readonly homeport: RunningHomeport
  /** The data directories of the other nodes. */
  readonly homes: readonly string[]
  /** With these options the node starts again at its place. */
  readonly options: StartOptions
}

/**
 * Starts a server as one node of several on a PostgreSQL of their own. It has no databases: the others are their homes. Its
 * addresses are those in the records of databases.
 * @param count of nodes, 2 or more.
 */
export async function startAmongNodes(count: number, options: StartOptions): Promise<AmongNodes> {
  const postgres = await startPostgresServer()
  atCleanup(() => postgres.stop())
  const place = await newPlace(options)
  const first = await optionsOf(0, postgres, place, options)
  const homeport = await startHomeport({ ...first, ...place })
  const homes: string[] = []
  for (let number = 1; number < count; number++) {
    const at = await newPlace({ redisPorts: place.redisPorts })
    homes.push(at.dataDir)
    const others = await optionsOf(number, postgres, place, options)
    await startHomeport({ ...others, ...at, credentials: homeport.credentials, host: `127.0.0.${number + 1}` })
  }
  const known = async () => ((await homeport.api('GET', '/v2/nodes')).body as object[]).filter(knows).length
  await waitFor(async () => (await known()) === count, { what: 'the nodes to know each other' })
  return { homeport, homes, options: first }
}

const knows = (node: object): boolean => 'engine_memory' in node

async function optionsOf(
  number: number,
  postgres: PostgresServer,
  first: Place,
  options: StartOptions,
): Promise<StartOptions> {
  // A URL that is the node's own address counts as none, which differs from the other nodes.
  const flags = {
    ...{ store: `${postgres.url}/postgres`, node: `n${number}`, advertise: '127.0.0.1', 'peer-port': await freePort() },
    ...(number === 0 && { region: REGION_OF_FIRST }),
    ...{
      'public-api-url': `http://localhost:${first.apiPort}`,
      'public-queue-url': `http://localhost:${first.queuePort}`,
    },
    ...{ 'public-rest-url': `http://127.0.0.1:${first.restPort}`, 'public-redis-host': '127.0.0.1' },
  }
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)])
  return { ...options, args: [...args, ...(options.args ?? [])] }
}
