import { type PostgresServer, startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { atCleanup } from './cleanup.js'
import { newPlace, type Place, type RunningHomeport, type StartOptions, startHomeport } from './homeport.js'
import { freePort } from './ports.js'
import { waitFor } from './wait-for.js'

/** A region that no test asks for, so that the node that tests talk to is not the home of any database. */
const REGION_OF_FIRST = 'ap-southeast-2'

/** The nodes of a cluster. Tests talk to the first one as to a single server. */
export interface AmongNodes {
  /** The running nodes. All but the first are homes of databases. */
  readonly nodes: readonly RunningHomeport[]
  /** Ends these nodes with a signal, all at once, and starts them again at their places. */
  restart(numbers: readonly number[], signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/**
 * Starts the nodes of a cluster on a PostgreSQL of their own. The first node is the home of no database; the others are the
 * homes. The records of databases contain the addresses of the first node.
 * @param count of nodes, 2 or more.
 */
export async function startAmongNodes(count: number, options: StartOptions): Promise<AmongNodes> {
  const postgres = await startPostgresServer()
  atCleanup(() => postgres.stop())
  const place = await newPlace(options)
  const startedWith: StartOptions[] = [{ ...(await optionsOf(0, postgres, place, options)), ...place }]
  const nodes: RunningHomeport[] = []
  const start = async (number: number): Promise<void> => {
    nodes[number] = await startHomeport(startedWith[number])
  }
  await start(0)
  for (let number = 1; number < count; number++) {
    const at = await newPlace({ redisPorts: place.redisPorts })
    const others = await optionsOf(number, postgres, place, options)
    const credentials = nodes[0]?.credentials
    startedWith.push({ ...others, ...at, ...(credentials && { credentials }), host: `127.0.0.${number + 1}` })
    await start(number)
  }
  const knowEachOther = async (): Promise<void> => {
    const known = async (node: RunningHomeport) =>
      ((await node.api('GET', '/v2/nodes')).body as object[]).filter(knows).length
    const counts = async () => (await Promise.all(nodes.map(known))).every((known) => known === count)
    await waitFor(counts, { what: 'the nodes to know each other' })
  }
  await knowEachOther()
  return {
    nodes,
    async restart(numbers, signal) {
      await Promise.all(numbers.map((number) => nodes[number]?.kill(signal)))
      await Promise.all(numbers.map(start))
      await knowEachOther()
    },
  }
}

const knows = (node: object): boolean => 'engine_memory' in node

async function optionsOf(
  number: number,
  postgres: PostgresServer,
  first: Place,
  options: StartOptions,
): Promise<StartOptions> {
  const flags = {
    store: `${postgres.url}/postgres`,
    node: `n${number}`,
    advertise: '127.0.0.1',
    'peer-port': await freePort(),
    ...(number === 0 && { region: REGION_OF_FIRST }),
    'public-api-url': `http://127.0.0.1:${first.apiPort}`,
    'public-queue-url': `http://127.0.0.1:${first.queuePort}`,
    'public-rest-url': `http://127.0.0.1:${first.restPort}`,
    'public-redis-host': '127.0.0.1',
  }
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)])
  return { ...options, args: [...args, ...(options.args ?? [])] }
}
