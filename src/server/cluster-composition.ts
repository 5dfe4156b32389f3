/** Makes this server a node of a cluster, if the configuration says so. */
import { join } from 'node:path'
import {
  type ClientMemoryBudget,
  randomSecret,
  readFileIfThere,
  replaceFile,
  sha256Hex,
  systemClock,
  VERSION,
} from '../base/index.js'
import { type Cluster, Clustered, createPeerLink, singleNode } from '../cluster/index.js'
import { type Config, isLoopback } from '../config/index.js'
import type { NotReady } from '../http/index.js'
import { openStore, type Store } from '../store/index.js'
import type { Logger, ServerMeters } from '../telemetry/index.js'

/** Collaborators and settings of a node. */
export interface ClusterDeps {
  readonly config: Config
  /** The plans in use: all nodes must have the same. */
  readonly plans: unknown
  readonly logger: Logger
  readonly meters: ServerMeters
  readonly memory: ClientMemoryBudget
  /** The store that all modules share. It is open, so it already has the tables of the cluster. */
  readonly store: Store
  /** Called when this node has to end. */
  readonly onFailure: (error: Error) => void
}

/** The cluster of this server, with members that only the composition uses. */
export interface OpenCluster {
  readonly cluster: Cluster
  /** Why this node should get no requests now. */
  readonly notReady: () => NotReady | undefined
  /** Closes both stores, after everything has stopped. */
  close(): Promise<void>
}

/** Opens the cluster; `start` of the result joins it. If it rejects, the store is closed. */
export async function openCluster(deps: ClusterDeps): Promise<OpenCluster> {
  const { config, onFailure, store } = deps
  const { node, store: location } = config
  if (node === undefined || location.kind === 'sqlite') {
    return { cluster: singleNode(), notReady: () => undefined, close: () => store.close() }
  }
  let upkeep: Store | undefined
  const close = async (): Promise<void> => {
    await Promise.all([upkeep?.close(), store.close()])
  }
  try {
    upkeep = await openStore({
      location: location.url,
      dataDir: config.dataDir,
      onFailure,
      sharing: 'cluster upkeep',
    })
    const cluster = await clusteredOn(upkeep, node, deps)
    const notReady = (): NotReady | undefined =>
      cluster.isDraining ? 'draining' : cluster.mayAct() ? undefined : 'cluster'
    return { cluster, notReady, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function clusteredOn(upkeep: Store, name: string, deps: ClusterDeps): Promise<Clustered> {
  const { config, plans, store, logger, meters, memory, onFailure } = deps
  const dir = await idOf(config.dataDir)
  const { host: advertised = config.host, port } = config.advertise ?? {}
  return new Clustered({
    store,
    upkeep,
    clock: systemClock,
    logger,
    meter: meters.cluster,
    onDead: onFailure,
    identity: {
      name,
      dir,
      version: VERSION,
      host: advertised,
      port,
      region: config.region,
      config: agreedOptions(config, plans),
    },
    link: (how) =>
      createPeerLink({
        ...how,
        store,
        clock: systemClock,
        logger,
        memory,
        host: listenOn(config.host, advertised),
        port: config.peerPort,
      }),
  })
}

/**
 * The address to listen on for other nodes. Nodes that advertise a loopback address share one machine, so loopback is
 * enough. Any other advertised address may be that of a router, so a node with a loopback `host` listens on all addresses.
 */
function listenOn(host: string, advertised: string): string {
  if (isLoopback(advertised)) return advertised
  return isLoopback(host) ? (advertised.includes(':') ? '::' : '0.0.0.0') : host
}

const ID_FILE = 'node-id'

/** The id of a data directory. The process that holds its lock may end an earlier incarnation with the same id. */
async function idOf(dataDir: string): Promise<string> {
  const path = join(dataDir, ID_FILE)
  const known = (await readFileIfThere(path))?.trim()
  if (known !== undefined && /^\w{20,}$/.test(known)) return known
  const id = randomSecret()
  await replaceFile(path, `${id}\n`)
  return id
}

/** Options that all nodes must agree on, because any node may serve what another one has accepted. */
const AGREED = [
  'freeAccountDatabases',
  'paidAccountDatabases',
  'manualBackups',
  'freeAccountDailyMessages',
  'accountSchedules',
  'managementBodyLimitBytes',
  'queueBodyLimitBytes',
  'standbys',
  'deliveryTimeoutMs',
  'deliveryTargets',
  'responseKeepBytes',
  'retentionMs',
  'retentionBytes',
] as const satisfies readonly (keyof Config)[]

/** Digests of the options that all nodes must agree on, by name. Public URLs count as they are set, without defaults. */
export function agreedOptions(config: Config, plans: unknown): Readonly<Record<string, string>> {
  const { publicApiUrl = '', publicQueueUrl = '' } = config.givenUrls
  const values = Object.entries({
    ...Object.fromEntries(AGREED.map((name) => [name, config[name]])),
    publicApiUrl,
    publicQueueUrl,
    plansFile: plans,
  })
  return Object.fromEntries(
    values.map(([name, value]) => [name, sha256Hex(JSON.stringify(value ?? null)).slice(0, 16)] as const),
  )
}
