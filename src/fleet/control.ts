/**
 * Changes running engines. The connection of the control user lives only as long as the change: an idle engine holds no
 * connection of ours.
 */
import { createServer } from 'node:net'
import { Redis } from 'iovalkey'
import { type Clock, pause } from '../base/index.js'
import { type ControlAddress, usedBytesIn } from './ask.js'
import { allUsers, evictionPolicy, HZ, knownSettings, OWN_DEFAULTS } from './engine-config.js'
import { CONTROL_USER, REPLICATION_USER } from './spec.js'
import type { EngineInfo, EngineOccupancy, EngineSpec } from './types.js'

const COMMAND_TIMEOUT_MS = 10_000
const PORT_ATTEMPTS = 20
const LINK_POLL_MS = 10

/** Runs `work` on a control connection. Rejects with the first error of either; never retries. */
export async function withControl<Result>(
  address: ControlAddress,
  work: (engine: Redis) => Promise<Result>,
): Promise<Result> {
  const engine = new Redis({
    path: address.socketPath,
    username: CONTROL_USER,
    password: address.secrets.control,
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
  })
  // Connection errors also reject the waiting command, which handles them.
  engine.on('error', () => {})
  try {
    await engine.connect()
    return await work(engine)
  } finally {
    engine.disconnect()
  }
}

async function setUsers(engine: Redis, desired: ReturnType<typeof allUsers>): Promise<void> {
  const present = (await engine.call('ACL', 'USERS')) as readonly string[]
  // No transaction: an engine whose memory is full refuses commands queued in MULTI. No command depends on another.
  const pipeline = engine.pipeline()
  for (const [name, rules] of desired) pipeline.call('ACL', 'SETUSER', name, 'reset', ...rules)
  for (const name of present) if (!desired.has(name)) pipeline.call('ACL', 'DELUSER', name)
  const replies = (await pipeline.exec()) ?? []
  for (const [error] of replies) if (error) throw error
}

/** Applies the settings and users of a spec to a running engine. */
export function applySettings(
  address: ControlAddress,
  spec: EngineSpec,
  { commands, settings }: Pick<EngineInfo, 'commands' | 'settings'>,
): Promise<void> {
  return withControl(address, async (engine) => {
    const memory = ['maxmemory', `${spec.maxMemoryBytes}`, 'maxmemory-policy', evictionPolicy(spec.eviction)]
    await engine.call('CONFIG', 'SET', ...memory, 'notify-keyspace-events', spec.keyspaceEvents ?? '')
    // Resets settings that the spec no longer has.
    await engine.call('CONFIG', 'SET', ...OWN_DEFAULTS.flatMap((line) => line.split(' ')))
    const desired = knownSettings(spec, settings).flat()
    if (desired.length > 0) await engine.call('CONFIG', 'SET', ...desired)
    await setUsers(engine, allUsers(spec, address.secrets, commands))
  })
}

/** A loopback port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

/**
 * Opens a loopback port for replicas, because an engine cannot connect to a Unix socket. If another program takes the
 * port between our check and the bind, the engine reports it, stays as it was, and the next port is tried.
 * @returns the port.
 */
export function openReplicationPort(address: ControlAddress): Promise<number> {
  return withControl(address, async (engine) => {
    let lastError: unknown
    for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
      const port = await freePort()
      try {
        await engine.call('CONFIG', 'SET', 'port', `${port}`)
        return port
      } catch (error) {
        lastError = error
      }
    }
    throw lastError
  })
}

/** Closes the loopback port of a primary without replicas. */
export function closeReplicationPort(address: ControlAddress): Promise<void> {
  return withControl(address, async (engine) => {
    await engine.call('CONFIG', 'SET', 'port', '0')
  })
}

/** The replication section of `INFO` by field; empty while the engine is loading. */
async function replicationInfo(engine: Redis): Promise<ReadonlyMap<string, string>> {
  const text = await engine.info('replication').catch((error: Error) => {
    if (error.message.startsWith('LOADING')) return ''
    throw error
  })
  return new Map([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, field = '', value = '']) => [field, value]))
}

/** Regions of the replicas that receive the stream of changes. */
function streamingReplicas(info: ReadonlyMap<string, string>): readonly string[] {
  return [...info.entries()]
    .filter(([field, value]) => /^slave\d+$/.test(field) && value.includes('state=online'))
    .map(([, value]) => /ip=([^,]*)/.exec(value)?.[1] ?? '')
}

/**
 * Whether a replica is linked to the current process of its primary and receives changes. A replica may not have noticed
 * yet that its primary was replaced. The replication id shows it, because every process has its own. Just after the initial
 * copy, the primary may not stream yet.
 */
async function isLinked(replica: Redis, region: string, primary: Redis, upstream: Upstream): Promise<boolean> {
  const ours = await replicationInfo(replica)
  if (ours.get('master_link_status') !== 'up') return false
  const theirs = await replicationInfo(primary)
  const streaming = streamingReplicas(theirs)
  if (ours.get('master_replid') !== theirs.get('master_replid') || !streaming.includes(region)) return false
  if (streaming.length >= upstream.replicas) await primary.call('CONFIG', 'SET', 'hz', `${HZ}`)
  return true
}

/** The primary that a replica follows. */
export interface Upstream {
  readonly address: ControlAddress
  readonly port: number
  /** Desired number of replicas; once all are linked, the primary returns to its normal `hz`. */
  readonly replicas: number
  readonly clock: Clock
  /** Called between polls; throws when the primary was replaced or nobody waits any more. */
  readonly checkStillNeeded: () => void
}

/**
 * Makes an engine follow a primary, and resolves when its link is up and changes flow. Rejects with what
 * `checkStillNeeded` throws, or when an engine disconnects.
 */
export function followPrimary(address: ControlAddress, region: string, upstream: Upstream): Promise<void> {
  const { secrets } = upstream.address
  return withControl(upstream.address, (primary) =>
    withControl(address, async (replica) => {
      await replica.call('CONFIG', 'SET', 'masteruser', REPLICATION_USER, 'masterauth', secrets.replication)
      await replica.call('REPLICAOF', '127.0.0.1', `${upstream.port}`)
      while (!(await isLinked(replica, region, primary, upstream))) {
        upstream.checkStillNeeded()
        await pause(upstream.clock, LINK_POLL_MS)
      }
    }),
  )
}

/** Memory that counts against the limit of an engine, bytes. */
export function usedBytes(address: ControlAddress): Promise<number> {
  return withControl(address, async (engine) => {
    return usedBytesIn(await engine.info('memory'))
  })
}

/** Counts the clients of an engine by state. Our own connection has none of these states. */
export function occupancyOf(address: ControlAddress): Promise<EngineOccupancy> {
  return withControl(address, async (engine) => {
    const list = String(await engine.call('CLIENT', 'LIST'))
    const flags = [...list.matchAll(/ flags=(\w+)/g)].map(([, letters = '']) => letters)
    const having = (letter: string): number => flags.filter((letters) => letters.includes(letter)).length
    return {
      blocked: having('b'),
      subscribed: having('P'),
      monitoring: having('O'),
      tracking: having('t'),
      inTransaction: having('x'),
    }
  })
}
