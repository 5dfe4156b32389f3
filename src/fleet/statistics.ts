/** Looks at an engine that runs, for the statistics of its database: one `INFO` and the sizes of its files. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { askEngine, type ControlAddress, numberIn, usedBytesIn } from './ask.js'
import type { EngineSample, MemberRole, ReplicationStatus } from './types.js'

/** A member that serves, with what a look at it needs. */
export interface SampledMember {
  readonly region: string
  readonly role: MemberRole
  readonly generation: number
  readonly address: ControlAddress
  /** Its data directory. */
  readonly dir: string
}

/** What one engine tells. */
interface Seen {
  readonly keys: number
  readonly usedBytes: number
  readonly hits: number
  readonly misses: number
  readonly monitors: number
}

/** Looks at the members of a database; the first is its primary. */
export async function sampleMembers(members: readonly SampledMember[]): Promise<EngineSample | undefined> {
  const [primary] = members
  if (!primary) return undefined
  const [diskBytes, ...seen] = await Promise.all([bytesIn(primary.dir), ...members.map(({ address }) => look(address))])
  return {
    keys: seen[0]?.keys ?? 0,
    usedBytes: seen[0]?.usedBytes ?? 0,
    diskBytes,
    monitors: seen.reduce((sum, { monitors }) => sum + monitors, 0),
    lookups: members.map(({ generation }, index) => {
      const { hits, misses } = seen[index] ?? { hits: 0, misses: 0 }
      return { generation, hits, misses }
    }),
  }
}

async function look(address: ControlAddress): Promise<Seen> {
  const [info = '', clients = ''] = await askEngine(address, [['INFO'], ['CLIENT', 'LIST']])
  return {
    keys: Number(/^db0:keys=(\d+)/m.exec(info)?.[1] ?? 0),
    usedBytes: usedBytesIn(info),
    hits: numberIn(info, 'keyspace_hits'),
    misses: numberIn(info, 'keyspace_misses'),
    monitors: [...clients.matchAll(/ flags=\w*O/g)].length,
  }
}

/** A file that goes while we look at it, such as an old log, counts for nothing. */
async function bytesIn(dir: string): Promise<number> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile())
  const sizes = files.map(async ({ parentPath, name }) => {
    const facts = await stat(join(parentPath, name)).catch(() => undefined)
    return facts?.size ?? 0
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/** A member that serves, with what its replication needs. */
interface Replicating {
  readonly region: string
  readonly role: MemberRole
  readonly address: ControlAddress
}

/**
 * Reads the place of each member; the first is the primary. Replicas are asked first, so that none seems to be ahead. A
 * member that does not answer is left out.
 */
export async function replicationOf(members: readonly Replicating[]): Promise<readonly ReplicationStatus[]> {
  const [primary, ...replicas] = members
  if (!primary) return []
  const infos = await Promise.all(replicas.map(({ address }) => replicationInfo(address)))
  const ofPrimary = await replicationInfo(primary.address)
  if (ofPrimary === undefined) return []
  const statuses = replicas.flatMap(({ region, role }, index): ReplicationStatus[] => {
    const info = infos[index]
    return info === undefined ? [] : [{ region, role, ...distance(ofPrimary, info) }]
  })
  return [{ region: primary.region, role: primary.role, lagBytes: 0, heardSecondsAgo: 0 }, ...statuses]
}

/** How far the member with one answer to INFO is behind the primary with the other. */
export function distance(
  ofPrimary: string,
  ofReplica: string,
): Pick<ReplicationStatus, 'lagBytes' | 'heardSecondsAgo'> {
  const lagBytes = numberIn(ofPrimary, 'master_repl_offset') - numberIn(ofReplica, 'slave_repl_offset')
  const heardSecondsAgo = numberIn(ofReplica, 'master_last_io_seconds_ago')
  return { lagBytes: Math.max(lagBytes, 0), heardSecondsAgo: Math.max(heardSecondsAgo, 0) }
}

/** The replication section of INFO; `undefined` from an engine that hangs or ends while it is asked. */
async function replicationInfo(address: ControlAddress): Promise<string | undefined> {
  const answers = await askEngine(address, [['INFO', 'replication']]).catch(() => [])
  return answers[0]
}
