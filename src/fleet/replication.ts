/** How far replicas are behind their primary, as the engines themselves tell. Asked for when somebody looks. */
import { askEngine } from './ask.js'
import type { ControlAddress } from './control.js'
import { numberIn } from './info.js'
import type { MemberRole, ReplicationStatus } from './types.js'

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
