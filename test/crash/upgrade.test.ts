import { describe, expect, it, vi } from 'vitest'
import { atCleanup } from '../support/index.js'
import { judge } from './aftermath.js'
import { Callers, timeNow } from './callers.js'
import { startDestinations } from './destinations.js'
import { Ledger } from './ledger.js'
import { startLoad } from './load.js'
import { NodeScene } from './nodes.js'
import { FAST } from './pace.js'
import { startQueueDestinations } from './queue-destinations.js'
import { QueueLedger } from './queue-ledger.js'
import { startQueueLoad } from './queue-ledger-load.js'
import { connectToPostgres } from './queue-ledger-store.js'
import { UpgradedDatabases } from './upgrade-databases.js'

/**
 * Three nodes of an older version become nodes of this version, one after the other, while clients use every feature of the
 * queue, of workflows and of bulk actions through a balancer, and of databases that move between the nodes
 * (`upgrade-databases.ts`). Each node is drained first, as an operator does. In between, an old node is stopped and started
 * again beside new ones, which shows that a downgrade works as well. `npm run try-upgrade <git ref>` builds the older
 * version and sets `HOMEPORT_OLD_MAIN` to its `dist/main.js`.
 */

const OLD = process.env.HOMEPORT_OLD_MAIN
const DEADLINE_MS = 120_000
const THINK_MS = 50
/** Moves of databases when all nodes are new. */
const MOVES_AFTERWARDS = 6

vi.spyOn(console, 'warn').mockImplementation(() => undefined)
vi.spyOn(console, 'error').mockImplementation(() => undefined)

describe.runIf(OLD)('an upgrade node by node', () => {
  it('loses nothing, and no request fails', upgrade, 900_000)
})

async function migrationsIn(url: string): Promise<number> {
  const client = await connectToPostgres(url)
  const { rows } = await client.query<{ newest: number }>('SELECT max(number)::int AS newest FROM schema_migrations')
  await client.end()
  return rows[0]?.newest ?? 0
}

async function upgrade(): Promise<void> {
  const [queueLedger, ledger] = [new QueueLedger(), new Ledger()]
  const options = { random: Math.random, nodes: 3, onDisturbance: () => void queueLedger.life++ }
  const scene = await NodeScene.start({ ...options, ...(OLD !== undefined && { program: OLD }) })
  atCleanup(() => scene.stop())
  const before = await migrationsIn(scene.storeUrl)
  const homeport = scene.balanced
  const { queueToken: token, ...keys } = homeport.credentials
  const queueDestinations = await startQueueDestinations(queueLedger)
  const destinations = await startDestinations({ url: homeport.queueUrl, token, ...keys }, ledger)
  atCleanup(() => queueDestinations.close())
  atCleanup(() => destinations.close())
  const callers = new Callers(DEADLINE_MS, { ...FAST, thinkMs: THINK_MS })
  const queueLoad = startQueueLoad({ homeport, destinations: queueDestinations, ledger: queueLedger }, callers)
  const runLoad = startLoad(homeport, destinations, ledger, callers)
  // The older version may have defects when a database moves, so failures of clients of databases are counted apart.
  const ofDatabases = new Callers(DEADLINE_MS, { ...FAST, thinkMs: THINK_MS })
  const databases = await UpgradedDatabases.begin(scene, ofDatabases)
  const databaseLoad = databases.run()
  const allSucceed = async () => void (await Promise.all([callers.allSucceed(), ofDatabases.allSucceed()]))
  await allSucceed()

  const [first, second, third] = scene.nodes
  if (!first || !second || !third) throw new Error('there are not three nodes')
  /** The steps of the upgrade with their times, to compare with the failures of clients. */
  const steps: string[] = []
  const replace = async (node: typeof first, program: string | undefined): Promise<void> => {
    scene.useProgram(program)
    steps.push(`${timeNow()} ${node.name} is drained`)
    await databases.drain(node)
    steps.push(`${timeNow()} ${node.name} is stopped`)
    await scene.replace(node, allSucceed)
    steps.push(`${timeNow()} ${node.name} is ready`)
    databases.resume()
    await allSucceed()
    await databases.untilGuarded()
  }
  await replace(first, undefined)
  const after = await migrationsIn(scene.storeUrl)
  // The old nodes continue with the new schema, and one of them starts again with it.
  await replace(third, OLD)
  await replace(second, undefined)
  await replace(third, undefined)
  const older = ofDatabases.failures.length
  await databases.untilMoved(MOVES_AFTERWARDS)

  callers.end()
  ofDatabases.end()
  await Promise.all([queueLoad, runLoad.stopped(), databaseLoad])
  const place = { ...homeport.place, store: scene.storeUrl }
  const account = await judge({
    homeport,
    place,
    destinations,
    queueLedger,
    ledger,
    deadlineMs: DEADLINE_MS,
    commits: 'may be lost',
  })
  const successes = [...callers.successes.values()].reduce((sum, count) => sum + count, 0)
  const dead = await scene.deadNodes()
  console.log(
    `upgrade: schema ${before} -> ${after}; ${successes} actions of clients, ${callers.failures.length} failed; ${dead} nodes declared dead; queue: ${account}; runs: ${ledger.summary()}; databases: ${databases.summary}, ${ofDatabases.failures.length} actions failed`,
  )
  if (older > 0)
    console.log(`while older nodes ran: ${JSON.stringify({ steps, failures: ofDatabases.failures.slice(0, older) })}`)
  expect(await databases.lost()).toEqual([])
  expect({ steps, failures: callers.failures, ofDatabases: ofDatabases.failures.slice(older) }).toEqual({
    steps,
    failures: [],
    ofDatabases: [],
  })
}
