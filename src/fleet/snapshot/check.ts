/**
 * Loads a snapshot in an engine of its own that exists for this only, and compares it with what is known of it. The
 * engine is an ordinary desired state of the fleet for a database that nobody has: after a crash it goes as every orphan does.
 */
import type { Redis } from 'iovalkey'
import { type Clock, randomSecret } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type ControlAddress, numberIn } from '../ask.js'
import { withControl } from '../control.js'
import type { EngineSpec, SnapshotFacts } from '../types.js'
import { differenceOf, type Evidence, evidenceOf } from './evidence.js'

/** Besides its data an engine holds a command on its way in, a value that is unpacked, and what is free in between. */
const SPARE_BYTES = 2 * 2 ** 30

/** How much memory the process of an engine may take that takes what a stranger sends, for so much data. */
export function processMemoryFor(maxMemoryBytes: number): number {
  return 2 * maxMemoryBytes + SPARE_BYTES
}

/** More than any machine has: what is checked here is the file, not a plan. */
const NO_BOUND_BYTES = 2 ** 50

const THROWAWAY = 'check-'

/** Whether a database is the one of an engine that lives for one check. */
export const isThrowaway = (databaseId: string): boolean => databaseId.startsWith(THROWAWAY)

/** The desired state for an engine that lives for one check, of a file of ours unless there is a bound. */
export function throwawaySpec(maxMemoryBytes = NO_BOUND_BYTES): EngineSpec {
  const isForeign = maxMemoryBytes !== NO_BOUND_BYTES
  return {
    ...(isForeign && { processMemoryBytes: processMemoryFor(maxMemoryBytes) }),
    databaseId: `${THROWAWAY}${randomSecret(12)}`,
    members: [{ region: 'check', role: 'primary' }],
    users: [],
    maxMemoryBytes,
    eviction: false,
    persistence: 'snapshot',
    state: 'running',
  }
}

/** Looks into an engine that has loaded a snapshot. Rejects with `snapshot_unusable` when it is not what it should be. */
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

/** An engine that loads drops what has expired; it still counts as part of the file. */
async function factsOf(engine: Redis): Promise<SnapshotFacts> {
  const info = `${await engine.info('persistence')}\r\n${await engine.info('memory')}`
  const keys = numberIn(info, 'rdb_last_load_keys_loaded') + numberIn(info, 'rdb_last_load_keys_expired')
  return { keys, dataBytes: numberIn(info, 'used_memory') }
}

async function compare(engine: Redis, facts: SnapshotFacts, evidence: Evidence, clock: Clock): Promise<void> {
  if (facts.keys !== evidence.keys) {
    const reason = `it holds ${facts.keys} keys where the database had ${evidence.keys}`
    throw new HomeportError('snapshot_unusable', { reason })
  }
  const names = evidence.sample.map(({ key }) => key)
  if (names.length === 0) return
  const reason = differenceOf(evidence.sample, await evidenceOf(engine, names), clock.now())
  if (reason) throw new HomeportError('snapshot_unusable', { reason })
}
