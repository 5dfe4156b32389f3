import { Redis } from 'iovalkey'
import { atCleanup, freePort, waitFor } from '../../../test/support/index.js'
import { type SlowWire, startSlowWire } from '../../../test/support/slow-wire.js'
import { systemClock } from '../../base/index.js'
import type { DataEndpoint, EndpointSource } from '../deps.js'
import { createGateway } from '../gateway.js'
import type { Gateway } from '../interface.js'
import { ENGINE_PASSWORDS, startEngine, type TestEngine } from './engine.js'
import { CREDENTIALS, TestDirectory } from './rig.js'

/** A gateway in a read region, with a primary and a replica that follows it over a link that can be slow. */
export interface RegionRig {
  readonly gateway: Gateway
  readonly primary: TestEngine
  readonly replica: TestEngine
  readonly wire: SlowWire
  readonly port: number
  readonly restUrl: string
  /** Number of times that an engine has run a command. */
  callsOf(engine: TestEngine, command: string): Promise<number>
  /** Number of keys that an engine holds. */
  keysOf(engine: TestEngine): Promise<number>
}

const HOME_REGION = 'us-east-1'
const READ_REGION = 'eu-west-1'
const REPLICATOR = { name: 'replicator', password: 'replication-secret' }

class TwoEngines implements EndpointSource {
  readonly #primary: TestEngine
  readonly #replica: TestEngine

  constructor(primary: TestEngine, replica: TestEngine) {
    this.#primary = primary
    this.#replica = replica
  }

  async endpoints(): Promise<readonly DataEndpoint[]> {
    return [
      { role: 'primary', region: HOME_REGION, socketPath: this.#primary.socketPath },
      { role: 'replica', region: READ_REGION, socketPath: this.#replica.socketPath },
    ]
  }
}

/** Starts a region rig and waits until the replica follows. The gateway serves `region`. */
export async function startRegionRig(region = READ_REGION): Promise<RegionRig> {
  const primaryPort = await freePort()
  const primary = await startEngine([
    ...['--port', `${primaryPort}`, '--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '3600'],
    ...['--user', REPLICATOR.name, 'on', `>${REPLICATOR.password}`, '+psync', '+replconf', '+ping'],
  ])
  const wire = await startSlowWire(primaryPort)
  const replica = await startEngine([
    ...['--replicaof', '127.0.0.1', `${wire.port}`],
    ...['--masteruser', REPLICATOR.name, '--masterauth', REPLICATOR.password],
  ])
  await waitFor(async () => (await infoOf(replica, 'replication')).includes('master_link_status:up'), {
    what: 'the replica to follow the primary',
  })
  const port = await freePort()
  const directory = new TestDirectory()
  directory.databases.set('db-one', { databaseId: 'db-one', port, tls: false })
  const silent = (): void => {}
  const gateway = createGateway({
    settings: { host: '127.0.0.1', restPort: 0, region },
    directory,
    fleet: new TwoEngines(primary, replica),
    clock: systemClock,
    version: '0.0.0-test',
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    stopGraceMs: 200,
  })
  await gateway.start()
  atCleanup(() => gateway.stop())
  const restUrl = `http://127.0.0.1:${gateway.restPort}`
  return { gateway, primary, replica, wire, port, restUrl, callsOf, keysOf }
}

/** A client of the gateway, logged in as `default`. It is closed at cleanup. */
export function connectTo({ port }: Pick<RegionRig, 'port'>): Redis {
  const redis = new Redis({ port, host: '127.0.0.1', password: CREDENTIALS.password })
  atCleanup(() => redis.disconnect())
  return redis
}

async function callsOf(engine: TestEngine, command: string): Promise<number> {
  const stats = await infoOf(engine, 'commandstats')
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
}

async function keysOf(engine: TestEngine): Promise<number> {
  return Number(/^db0:keys=(\d+)/m.exec(await infoOf(engine, 'keyspace'))?.[1] ?? 0)
}

async function infoOf({ socketPath }: TestEngine, section: string): Promise<string> {
  const login = { username: 'observer', password: ENGINE_PASSWORDS.observer }
  const redis = new Redis({ path: socketPath, ...login, enableReadyCheck: false })
  try {
    return await redis.info(section)
  } finally {
    redis.disconnect()
  }
}
