/**
 * Changes to an engine that runs, over a connection of the control user that lives only as long as the change: an idle
 * engine holds no connection of ours.
 */
import { createServer } from 'node:net'
import { Redis } from 'iovalkey'
import { type Clock, pause } from '../base/index.js'
import { type ControlAddress, usedBytesIn } from './ask.js'
import { allUsers, evictionPolicy, knownSettings, OWN_DEFAULTS, UPKEEP_PER_SECOND } from './engine-config.js'
import { CONTROL_USER, REPLICATION_USER } from './spec.js'
import type { EngineInfo, EngineOccupancy, EngineSpec } from './types.js'

const COMMAND_TIMEOUT_MS = 10_000
const PORT_ATTEMPTS = 20
const LINK_POLL_MS = 10

/** Runs `work` on a control connection. Rejects with the first error of either; never tries again by itself. */
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
  // Errors of the connection also reject the command that waits for it, where they are handled.
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
  // Each is whole by itself, and an engine whose memory is full refuses whatever is queued in a transaction.
  const pipeline = engine.pipeline()
  for (const [name, rules] of desired) pipeline.call('ACL', 'SETUSER', name, 'reset', ...rules)
  for (const name of present) if (!desired.has(name)) pipeline.call('ACL', 'DELUSER', name)
  const replies = (await pipeline.exec()) ?? []
  for (const [error] of replies) if (error) throw error
}

/** Gives a running engine, which has these commands and settings, the settings and users of its spec. */
export function applySettings(
  address: ControlAddress,
  spec: EngineSpec,
  { commands, settings }: Pick<EngineInfo, 'commands' | 'settings'>,
): Promise<void> {
  return withControl(address, async (engine) => {
    const memory = ['maxmemory', `${spec.maxMemoryBytes}`, 'maxmemory-policy', evictionPolicy(spec.eviction)]
    await engine.call('CONFIG', 'SET', ...memory, 'notify-keyspace-events', spec.keyspaceEvents ?? '')
    // A setting that the spec has no longer goes back to what it is without it.
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
 * Lets a primary listen on a loopback port for its replicas, because an engine cannot dial a Unix socket. Another
 * program may take the port between our look and the engine's own bind; then the engine says so and stays as it was,
 * and the next port is tried.
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

/** Lets a primary without replicas listen on its Unix socket only. */
export function closeReplicationPort(address: ControlAddress): Promise<void> {
  return withControl(address, async (engine) => {
    await engine.call('CONFIG', 'SET', 'port', '0')
  })
}

/** The replication section of `INFO` by field; empty while the engine still reads its data and answers nothing else. */
async function replicationInfo(engine: Redis): Promise<ReadonlyMap<string, string>> {
  const text = await engine.info('replication').catch((error: Error) => {
    if (error.message.startsWith('LOADING')) return ''
    throw error
  })
  return new Map([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, field = '', value = '']) => [field, value]))
}

/** The regions of the replicas that a primary streams its changes to. */
function streamingReplicas(info: ReadonlyMap<string, string>): readonly string[] {
  return [...info.entries()]
    .filter(([field, value]) => /^slave\d+$/.test(field) && value.includes('state=online'))
    .map(([, value]) => /ip=([^,]*)/.exec(value)?.[1] ?? '')
}

/**
 * Whether a replica's link is up, leads to the primary that runs now, and carries changes. Just after a primary was
 * replaced, a replica may not have noticed yet; but every process begins a history of its own, whose id tells. And
 * just after the copy, the primary may not stream yet.
 */
async function isLinked(replica: Redis, region: string, primary: Redis, upstream: Upstream): Promise<boolean> {
  const ours = await replicationInfo(replica)
  if (ours.get('master_link_status') !== 'up') return false
  const theirs = await replicationInfo(primary)
  const streaming = streamingReplicas(theirs)
  if (ours.get('master_replid') !== theirs.get('master_replid') || !streaming.includes(region)) return false
  if (streaming.length >= upstream.replicas) await primary.call('CONFIG', 'SET', 'hz', `${UPKEEP_PER_SECOND}`)
  return true
}

/** What a replica needs to know of its primary. */
export interface Upstream {
  readonly address: ControlAddress
  readonly port: number
  /** How many replicas the primary is to have; once all are linked it goes over to its normal upkeep. */
  readonly replicas: number
  readonly clock: Clock
  /** Asked between looks; throws when the primary is not this process any more or nobody waits. */
  readonly checkStillNeeded: () => void
}

/**
 * Makes an engine copy a primary and resolves when its link is up: its data is the primary's, and changes follow.
 * Rejects with what `checkStillNeeded` throws, or when the engine goes away.
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

/** See `usedBytesIn`. */
export function usedBytes(address: ControlAddress): Promise<number> {
  return withControl(address, async (engine) => {
    return usedBytesIn(await engine.info('memory'))
  })
}

/** Counts the clients of an engine by what they need it for. A connection of ours that asks is none of them. */
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
