/** Takes a snapshot of a primary that keeps serving: a forked child of the engine writes the file. */
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

/** The engine to snapshot. */
export interface SnapshotSource {
  readonly address: ControlAddress
  /** Directory of the member. */
  readonly dir: string
  readonly persistence: EngineSpec['persistence']
  readonly clock: Clock
}

const POLL_MS = 25

/**
 * Takes a snapshot and puts it at `file`, by link if on the same file system. Rejects with `snapshot_failed`; then
 * there is no file.
 */
export async function takeSnapshot(source: SnapshotSource, file: string): Promise<Evidence> {
  const saved = join(source.dir, SNAPSHOT_FILE)
  try {
    const evidence = await withControl(source.address, async (engine) => {
      const begun = await beginSave(engine, source.clock)
      await waitUntilSaved(engine, source.clock)
      return begun
    })
    // With a log, the engine's own snapshot file is removed at once; without one it is the data itself, and stays.
    await (source.persistence === 'append-only' ? placeLink(saved, file) : placeCopy(saved, file))
    return evidence
  } catch (cause) {
    if (cause instanceof HomeportError) throw cause
    throw new HomeportError('snapshot_failed', { reason: 'the engine did not write it' }, { cause })
  } finally {
    // The engine never reads it: its data is in the log.
    if (source.persistence === 'append-only') await rm(saved, { force: true })
  }
}

/**
 * Sends the sample script and the save in one write that is smaller than the read buffer of the engine, so no other
 * command runs in between. While the engine writes something else it refuses, and this retries.
 */
async function beginSave(engine: Redis, clock: Clock): Promise<Evidence> {
  const script = String(await engine.call('SCRIPT', 'LOAD', SAMPLE_SCRIPT))
  for (;;) {
    await waitUntilIdle(engine, clock)
    const both = engine.pipeline()
    both.callBuffer('EVALSHA_RO', script, ...sampleArguments())
    both.call('BGSAVE')
    const [sample, save] = (await both.exec()) ?? []
    if (sample?.[0]) throw sample[0]
    if (!save?.[0]) return readEvidence(sample?.[1])
    if (!/in progress|child process/i.test(save[0].message)) throw save[0]
  }
}

/** Waits until the engine writes neither a snapshot nor a log. */
async function waitUntilIdle(engine: Redis, clock: Clock): Promise<void> {
  for (;;) {
    const info = await engine.info('persistence')
    if (!/^(?:rdb_bgsave|aof_rewrite)_in_progress:1/m.test(info)) return
    await pause(clock, POLL_MS)
  }
}

async function waitUntilSaved(engine: Redis, clock: Clock): Promise<void> {
  for (;;) {
    const info = await engine.info('persistence')
    if (/^rdb_bgsave_in_progress:0/m.test(info)) {
      if (/^rdb_last_bgsave_status:ok/m.test(info)) return
      throw new HomeportError('snapshot_failed', { reason: 'the engine could not write it; the disk may be full' })
    }
    await pause(clock, POLL_MS)
  }
}
