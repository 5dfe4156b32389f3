/** Takes the engine's own snapshot of a primary that goes on serving: a forked child of it writes the file. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Redis } from 'iovalkey'
import { type Clock, pause } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ControlAddress } from '../ask.js'
import { withControl } from '../control.js'
import { SNAPSHOT_FILE } from '../engine-files.js'
import type { EngineSpec } from '../types.js'
import { type Evidence, readEvidence, SAMPLE_SCRIPT, sampleArguments } from './evidence.js'
import { placeCopy, placeLink } from './files.js'

/** Which engine to take the snapshot of. */
export interface SnapshotSource {
  readonly address: ControlAddress
  /** The member's directory. */
  readonly dir: string
  readonly persistence: EngineSpec['persistence']
  readonly clock: Clock
}

const LOOK_MS = 25

/**
 * Takes a snapshot and puts it at `file`, which must be on the same file system or is copied.
 * Rejects with `snapshot_failed`; then there is no file.
 */
export async function takeSnapshot(source: SnapshotSource, file: string): Promise<Evidence> {
  const saved = join(source.dir, SNAPSHOT_FILE)
  try {
    const evidence = await withControl(source.address, async (engine) => {
      const begun = await beginSave(engine, source.clock)
      await untilSaved(engine, source.clock)
      return begun
    })
    // Beside a log the engine's own snapshot goes at once; without one it is the data itself, and stays.
    await (source.persistence === 'append-only' ? placeLink(saved, file) : placeCopy(saved, file))
    return evidence
  } catch (cause) {
    if (cause instanceof HomeportError) throw cause
    throw new HomeportError('snapshot_failed', { reason: 'the engine did not write it' }, { cause })
  } finally {
    // The engine itself would never read it: its data is in the log.
    if (source.persistence === 'append-only') await rm(saved, { force: true })
  }
}

/**
 * The sample and the save travel in one write of less than the engine reads at a time, so that no command of anybody
 * comes between them. While the engine writes something else, it refuses, and is asked again.
 */
async function beginSave(engine: Redis, clock: Clock): Promise<Evidence> {
  const script = String(await engine.call('SCRIPT', 'LOAD', SAMPLE_SCRIPT))
  for (;;) {
    await untilIdle(engine, clock)
    const both = engine.pipeline()
    both.callBuffer('EVALSHA_RO', script, ...sampleArguments())
    both.call('BGSAVE')
    const [sample, save] = (await both.exec()) ?? []
    if (sample?.[0]) throw sample[0]
    if (!save?.[0]) return readEvidence(sample?.[1])
    if (!/in progress|child process/i.test(save[0].message)) throw save[0]
  }
}

/** Waits until the engine writes neither a snapshot nor a new log. */
async function untilIdle(engine: Redis, clock: Clock): Promise<void> {
  for (;;) {
    const info = await engine.info('persistence')
    if (!/^(?:rdb_bgsave|aof_rewrite)_in_progress:1/m.test(info)) return
    await pause(clock, LOOK_MS)
  }
}

async function untilSaved(engine: Redis, clock: Clock): Promise<void> {
  for (;;) {
    const info = await engine.info('persistence')
    if (/^rdb_bgsave_in_progress:0/m.test(info)) {
      if (/^rdb_last_bgsave_status:ok/m.test(info)) return
      throw new HomeportError('snapshot_failed', { reason: 'the engine could not write it; the disk may be full' })
    }
    await pause(clock, LOOK_MS)
  }
}
