/**
 * Loads a snapshot in a throwaway engine, and compares it with what is known of it. The engine is an ordinary desired state
 * for a database that does not exist. After a crash, the next start deletes its files (`collectOrphans`).
 */
import type { Redis } from 'iovalkey'
import { type Clock, randomSecret } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type ControlAddress, numberIn } from '../ask.js'
import { withControl } from '../control.js'
import type { EngineSpec, SnapshotFacts } from '../types.js'
import { differenceOf, type Evidence, evidenceOf } from './evidence.js'

/** Memory beside the data: incoming commands, a value being unpacked, fragmentation. */
const SPARE_BYTES = 2 * 2 ** 30

/** Memory limit of the process of an engine that loads untrusted data, bytes. */
export function processMemoryFor(maxMemoryBytes: number): number {
  return 2 * maxMemoryBytes + SPARE_BYTES
}

/** More memory than any machine has: a check is not limited by a plan. */
const NO_LIMIT_BYTES = 2 ** 50

const THROWAWAY = 'check-'

/** The id of a database for a throwaway engine. After a crash, the next start deletes its files. */
export const throwawayId = (): string => `${THROWAWAY}${randomSecret(12)}`

/** Whether a database belongs to a throwaway engine. */
export const isThrowaway = (databaseId: string): boolean => databaseId.startsWith(THROWAWAY)

/** Desired state of a throwaway engine. With a limit, for an untrusted file. */
export function throwawaySpec(maxMemoryBytes = NO_LIMIT_BYTES): EngineSpec {
  const isForeign = maxMemoryBytes !== NO_LIMIT_BYTES
  return {
    ...(isForeign && { processMemoryBytes: processMemoryFor(maxMemoryBytes) }),
    databaseId: throwawayId(),
    members: [{ region: 'check', role: 'primary' }],
    users: [],
    maxMemoryBytes,
    eviction: false,
    persistence: 'snapshot',
    state: 'running',
  }
}

/**
 * Inspects an engine that has loaded a snapshot. Rejects with `snapshot_unusable` when it differs from the evidence.
 */
export function checkLoaded(
  address: ControlAddress,
  evidence: Evidence | undefined,
  clock: Clock,
): Promise<SnapshotFacts> {
  return withControl(address, async (engine) => {
    const facts = await factsOf(engine)
    if (evidence) await compare(engine, facts, evidence, clock)
    return facts
  })
}

/** An engine drops expired keys while loading; they still count as part of the file. */
async function factsOf(engine: Redis): Promise<SnapshotFacts> {
  const info = `${await engine.info('persistence')}\r\n${await engine.info('memory')}`
  const keys = numberIn(info, 'rdb_last_load_keys_loaded') + numberIn(info, 'rdb_last_load_keys_expired')
  return { keys, dataBytes: numberIn(info, 'used_memory') }
}

async function compare(engine: Redis, facts: SnapshotFacts, evidence: Evidence, clock: Clock): Promise<void> {
  if (facts.keys !== evidence.keys) {
    const reason = `it holds ${facts.keys} keys, but the database had ${evidence.keys}`
    throw new HomeportError('snapshot_unusable', { reason })
  }
  const names = evidence.sample.map(({ key }) => key)
  if (names.length === 0) return
  const reason = differenceOf(evidence.sample, await evidenceOf(engine, names), clock.now())
  if (reason) throw new HomeportError('snapshot_unusable', { reason })
}
