/**
 * Statistics of running engines: samples for usage (one `INFO` and file sizes), and how far replicas are behind.
 * Queried only on demand.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { askEngine, type ControlAddress, numberIn, usedBytesIn } from './ask.js'
import type { EngineSample, MemberRole, ReplicationStatus } from './types.js'

/** A serving member with what sampling needs. */
export interface ServingMember {
  readonly region: string
  readonly role: MemberRole
  readonly generation: number
  readonly address: ControlAddress
  /** Its data directory. */
  readonly dir: string
}

/** Values of one engine. */
interface EngineValues {
  readonly keys: number
  readonly usedBytes: number
  readonly hits: number
  readonly misses: number
  readonly monitors: number
}

/** Samples the members of a database; the first is its primary. */
export async function sampleMembers(members: readonly ServingMember[]): Promise<EngineSample | undefined> {
  const [primary] = members
  if (!primary) return undefined
  const [diskBytes, ...values] = await Promise.all([
    bytesIn(primary.dir),
    ...members.map(({ address }) => readValues(address)),
  ])
  return {
    keys: values[0]?.keys ?? 0,
    usedBytes: values[0]?.usedBytes ?? 0,
    diskBytes,
    monitors: values.reduce((sum, { monitors }) => sum + monitors, 0),
    lookups: members.map(({ generation }, index) => {
      const { hits, misses } = values[index] ?? { hits: 0, misses: 0 }
      return { generation, hits, misses }
    }),
  }
}

async function readValues(address: ControlAddress): Promise<EngineValues> {
  const [info = '', clients = ''] = await askEngine(address, [['INFO'], ['CLIENT', 'LIST']])
  const keys = Number(/^db0:keys=(\d+)/m.exec(info)?.[1] ?? 0)
  return {
    keys,
    usedBytes: keys === 0 ? 0 : Math.max(0, usedBytesIn(info) - numberIn(info, 'used_memory_startup')),
    hits: numberIn(info, 'keyspace_hits'),
    misses: numberIn(info, 'keyspace_misses'),
    monitors: [...clients.matchAll(/ flags=\w*O/g)].length,
  }
}

/** A file deleted meanwhile, such as an old log, counts as 0. */
async function bytesIn(dir: string): Promise<number> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile())
  const sizes = files.map(async ({ parentPath, name }) => {
    const facts = await stat(join(parentPath, name)).catch(() => undefined)
    return facts?.size ?? 0
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/** A serving member with what replication status needs. */
interface Replicating {
  readonly region: string
  readonly role: MemberRole
  readonly address: ControlAddress
}

/**
 * Reads the replication status of each member; the first is the primary. Replicas are queried first, so none seems
 * ahead. Members that do not answer are left out.
 */
export async function replicationOf(members: readonly Replicating[]): Promise<readonly ReplicationStatus[]> {
  const [primary, ...replicas] = members
  if (!primary) return []
  const infos = await Promise.all(replicas.map(({ address }) => replicationInfo(address)))
  const ofPrimary = await replicationInfo(primary.address)
  if (ofPrimary === undefined) return []
  const statuses = replicas.flatMap(({ region, role }, index): ReplicationStatus[] => {
    const info = infos[index]
    return info === undefined ? [] : [{ region, role, ...lagOf(ofPrimary, info) }]
  })
  return [{ region: primary.region, role: primary.role, lagBytes: 0, heardSecondsAgo: 0 }, ...statuses]
}

/** How far a replica is behind its primary, from their INFO replies. */
export function lagOf(ofPrimary: string, ofReplica: string): Pick<ReplicationStatus, 'lagBytes' | 'heardSecondsAgo'> {
  const lagBytes = numberIn(ofPrimary, 'master_repl_offset') - numberIn(ofReplica, 'slave_repl_offset')
  const heardSecondsAgo = numberIn(ofReplica, 'master_last_io_seconds_ago')
  return { lagBytes: Math.max(lagBytes, 0), heardSecondsAgo: Math.max(heardSecondsAgo, 0) }
}

/** The replication section of INFO; `undefined` if the engine hangs or ends. */
async function replicationInfo(address: ControlAddress): Promise<string | undefined> {
  const answers = await askEngine(address, [['INFO', 'replication']]).catch(() => [])
  return answers[0]
}
