/** Takes snapshots of a primary that keeps serving: a forked child of the engine writes the file. */
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Redis } from 'iovalkey'
import { type Clock, isUnwritable, pause } from '../../base/index.js'
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
/** FLUSHALL kills the child that writes a snapshot. One that is killed this often in a row fails. */
const MOST_TRIES = 5

/**
 * Takes a snapshot and puts it at `file`, by link if on the same file system. Rejects with `snapshot_failed` or
 * `store_full`; then there is no file.
 */
export async function takeSnapshot(source: SnapshotSource, file: string): Promise<Evidence> {
  const saved = join(source.dir, SNAPSHOT_FILE)
  try {
    const evidence = await withControl(source.address, (engine) => save(engine, source, saved))
    // With a log, the engine's own snapshot file is removed at once; without one it is the data itself, and stays.
    await (source.persistence === 'append-only' ? placeLink(saved, file) : placeCopy(saved, file))
    return evidence
  } catch (cause) {
    if (cause instanceof HomeportError) throw cause
    if (isUnwritable(cause)) throw new HomeportError('store_full', {}, { cause })
    throw new HomeportError('snapshot_failed', { reason: 'the engine did not write it' }, { cause })
  } finally {
    // The engine never reads it: its data is in the log. The next snapshot deletes what is left here.
    if (source.persistence === 'append-only') await rm(saved, { force: true }).catch(() => undefined)
  }
}

/** Has an engine without a log write its data, unless it has. Rejects with `snapshot_failed`. */
export async function saveChanges(source: SnapshotSource): Promise<void> {
  const { address, clock, dir } = source
  try {
    await withControl(address, async (engine) => {
      const info = await infoUntil(engine, clock, () => true)
      if (/^rdb_changes_since_last_save:0\r/m.test(info)) return
      await save(engine, source, join(dir, SNAPSHOT_FILE)).catch(async (error: unknown) => {
        if (error instanceof HomeportError) throw error
        // It has no memory for another process, as it may have for its own work: commands wait meanwhile.
        await engine.call('SAVE')
      })
    })
  } catch (cause) {
    if (cause instanceof HomeportError) throw cause
    throw new HomeportError('snapshot_failed', { reason: 'the engine did not write it' }, { cause })
  }
}

/** Has the engine write its snapshot file, again if a client's FLUSHALL has killed the writer: the engine reports no failure then. */
async function save(engine: Redis, { persistence, clock }: SnapshotSource, saved: string): Promise<Evidence> {
  for (let tries = 1; ; tries++) {
    if (persistence === 'append-only') await rm(saved, { force: true })
    const { evidence, flushes } = await beginSave(engine, clock)
    await waitUntilSaved(engine, clock)
    // Without a log, the file is the data itself, and FLUSHALL replaces it.
    const isWhole = persistence === 'append-only' ? await exists(saved) : (await flushesOf(engine)) === flushes
    if (isWhole) return evidence
    if (tries === MOST_TRIES) throw new HomeportError('snapshot_failed', { reason: KILLED })
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

async function flushesOf(engine: Redis): Promise<string | undefined> {
  return flushesIn(await engine.info('commandstats'))
}

/** How often FLUSHALL was called, in the words of the engine. */
const flushesIn = (info: unknown): string | undefined => /^cmdstat_flushall:calls=(\d+)/m.exec(String(info))?.[1]

const KILLED = `FLUSHALL deleted all data while it was being written, ${MOST_TRIES} times in a row`

/**
 * Sends the sample script, the save and the question for earlier flushes in one write that is smaller than the read buffer of
 * the engine, so no other command runs in between. While the engine writes something else it refuses, and this retries.
 */
async function beginSave(
  engine: Redis,
  clock: Clock,
): Promise<{ readonly evidence: Evidence; readonly flushes: string | undefined }> {
  for (;;) {
    await waitUntilIdle(engine, clock)
    const all = engine.pipeline()
    all.callBuffer('EVAL_RO', SAMPLE_SCRIPT, ...sampleArguments())
    all.call('BGSAVE')
    all.info('commandstats')
    const [sample, begun, stats] = (await all.exec()) ?? []
    const refusal = sample?.[0] ?? begun?.[0] ?? stats?.[0]
    if (!refusal) return { evidence: readEvidence(sample?.[1]), flushes: flushesIn(stats?.[1]) }
    if (!/in progress|child process/i.test(refusal.message) && !isBusy(refusal)) throw refusal
  }
}

/** Waits until the engine writes neither a snapshot nor a log. */
async function waitUntilIdle(engine: Redis, clock: Clock): Promise<void> {
  await infoUntil(engine, clock, (info) => !/^(?:rdb_bgsave|aof_rewrite)_in_progress:1/m.test(info))
}

async function waitUntilSaved(engine: Redis, clock: Clock): Promise<void> {
  const info = await infoUntil(engine, clock, (text) => /^rdb_bgsave_in_progress:0/m.test(text))
  if (/^rdb_last_bgsave_status:ok/m.test(info)) return
  throw new HomeportError('snapshot_failed', { reason: 'the engine could not write it; the disk may be full' })
}

/** While a client's script runs for long, the engine answers nothing else. */
async function infoUntil(engine: Redis, clock: Clock, isMet: (info: string) => boolean): Promise<string> {
  for (;;) {
    const info = await engine.info('persistence').catch((error: unknown) => {
      if (isBusy(error)) return undefined
      throw error
    })
    if (info !== undefined && isMet(info)) return info
    await pause(clock, POLL_MS)
  }
}

const isBusy = (error: unknown): boolean => error instanceof Error && error.message.startsWith('BUSY')
