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
/** FLUSHALL kills the child that writes a snapshot. After this many killed children in a row, the snapshot fails. */
const MAX_TRIES = 5

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
    // An engine with a log never reads this file. If the deletion fails, the next snapshot deletes the file.
    if (source.persistence === 'append-only') await rm(saved, { force: true }).catch(() => undefined)
  }
}

/**
 * Makes an engine without a log write its data, unless nothing has changed since its last save. Rejects with
 * `snapshot_failed`.
 */
export async function saveChanges(source: SnapshotSource): Promise<void> {
  const { address, clock, dir } = source
  try {
    await withControl(address, async (engine) => {
      const info = await infoUntil(engine, clock, () => true)
      if (/^rdb_changes_since_last_save:0\r/m.test(info)) return
      await save(engine, source, join(dir, SNAPSHOT_FILE)).catch(async (error: unknown) => {
        if (error instanceof HomeportError) throw error
        // The engine may lack the memory for a child. Then it saves in its own process, and commands wait meanwhile.
        await engine.call('SAVE')
      })
    })
  } catch (cause) {
    if (cause instanceof HomeportError) throw cause
    throw new HomeportError('snapshot_failed', { reason: 'the engine did not write it' }, { cause })
  }
}

/**
 * Makes the engine write its snapshot file. Repeats that when a client's FLUSHALL has killed the writing child, which the
 * engine does not report as a failure.
 */
async function save(engine: Redis, { persistence, clock }: SnapshotSource, saved: string): Promise<Evidence> {
  for (let tries = 1; ; tries++) {
    if (persistence === 'append-only') await rm(saved, { force: true })
    const { evidence, flushes } = await beginSave(engine, clock)
    await waitUntilSaved(engine, clock)
    // Without a log, the file is the data itself, and FLUSHALL replaces it.
    const isWhole = persistence === 'append-only' ? await exists(saved) : (await flushesOf(engine)) === flushes
    if (isWhole) return evidence
    if (tries === MAX_TRIES) throw new HomeportError('snapshot_failed', { reason: KILLED })
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

/** The number of FLUSHALL calls as the engine reports it; undefined before the first. */
const flushesIn = (info: unknown): string | undefined => /^cmdstat_flushall:calls=(\d+)/m.exec(String(info))?.[1]

const KILLED = `FLUSHALL deleted all data while it was being written, ${MAX_TRIES} times in a row`

/**
 * Sends the sample script, the save and the query for earlier flushes in one write that is smaller than the read buffer of
 * the engine, so no other command runs in between. The engine refuses while it writes something else; then this retries.
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

/**
 * Polls INFO until a condition is met. While a long script of a client runs, the engine answers nothing else, and this
 * keeps polling.
 */
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
