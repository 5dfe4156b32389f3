import { type Destinations, startDestinations } from '../crash/destinations.js'
import { Ledger } from '../crash/ledger.js'
import { startLoad } from '../crash/load.js'
import type { Pace } from '../crash/pace.js'
import { type QueueDestinations, startQueueDestinations } from '../crash/queue-destinations.js'
import { QueueLedger } from '../crash/queue-ledger.js'
import { startQueueLoad } from '../crash/queue-ledger-load.js'
import { atCleanup, type RunningHomeport } from '../support/index.js'
import { DatabaseLedger } from './database-ledger.js'
import { type DatabaseClients, type NewDatabase, startDatabaseLoad } from './database-load.js'
import { Loads } from './loads.js'
import { ManagementLedger } from './management-ledger.js'
import { createDatabase, startManagementLoad } from './management-load.js'
import { RunLedger, startRichEndpoints, startRunLoad } from './rich-runs.js'
import type { SoakServer } from './server.js'

/** The collaborators of a round. */
export interface Scene {
  readonly server: SoakServer
  readonly loads: Loads
  readonly queue: { readonly ledger: QueueLedger; readonly destinations: QueueDestinations }
  readonly runs: { readonly ledger: Ledger; readonly destinations: Destinations }
  readonly rich: RunLedger
  readonly data: { readonly ledger: DatabaseLedger; readonly clients: readonly DatabaseClients[] }
  readonly management: ManagementLedger
  readonly databases: { readonly shop: NewDatabase; readonly till: NewDatabase; readonly vault: NewDatabase }
}

/** Starts the destinations, makes the databases, and starts their load. */
export async function prepare(server: SoakServer, homeport: RunningHomeport, pace: Pace): Promise<Scene> {
  const { queueToken: token, currentSigningKey, nextSigningKey } = homeport.credentials
  const access = { url: homeport.queueUrl, token, currentSigningKey, nextSigningKey }
  const loads = new Loads(server, pace)
  const queueLedger = new QueueLedger()
  const queue = { ledger: queueLedger, destinations: await startQueueDestinations(queueLedger) }
  const runLedger = new Ledger()
  const runs = { ledger: runLedger, destinations: await startDestinations(access, runLedger) }
  const richEndpoints = await startRichEndpoints(access)
  for (const destinations of [queue.destinations, runs.destinations, richEndpoints])
    atCleanup(() => destinations.close())
  const databases = {
    shop: await createDatabase(homeport, { database_name: 'shop', read_regions: ['eu-west-1'] }),
    till: await createDatabase(homeport, { database_name: 'till' }),
    vault: await createDatabase(homeport, { database_name: 'vault' }),
  }
  const ledger = new DatabaseLedger(server.engineKills)
  const clients = [databases.shop, databases.till].map((one) => startDatabaseLoad(loads, one, ledger, 2))
  const rich = new RunLedger()
  startRunLoad(loads, richEndpoints, rich)
  const management = new ManagementLedger()
  return { server, loads, queue, runs, rich, data: { ledger, clients }, management, databases }
}

/** Starts the load on the queue, the workflows and the management API. */
export function startLoads({ server, loads, queue, runs, management, databases }: Scene): void {
  const { pace } = loads
  loads.repeat('queue', async (homeport) => void (await startQueueLoad({ homeport, ...queue }, { pace })))
  loads.repeat('runs', async (homeport) => {
    const load = startLoad(homeport, runs.destinations, runs.ledger, { pace })
    await load.stopped()
  })
  startManagementLoad(loads, management, databases, server.engineKills)
}
