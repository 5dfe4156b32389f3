/**
 * Rewrites append-only logs: before an engine stops, if its next start becomes faster, and while the disk is nearly full,
 * if that frees space. A log is a base (a snapshot) and the commands since. An engine reads a snapshot about twice as fast
 * as commands (100 MB: 0.5 s against 0.9 s), and overwritten or deleted values are not in it. Writing a base takes about as
 * long as reading one, so a rewrite pays when the commands are a large share of the log and take noticeably long to read.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Redis } from 'iovalkey'
import { type Clock, pause } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { askEngine, type ControlAddress, numberIn, usedBytesIn } from './ask.js'
import { withControl } from './control.js'
import { LOG_DIRECTORY } from './engine-files.js'

/** Fewer bytes of commands, about a tenth of a second to read, are left alone. */
const MIN_COMMAND_BYTES = 16 * 1024 * 1024
/** Minimum size of the commands relative to the base. */
const MIN_SHARE_OF_BASE = 0.5
const POLL_MS = 25

/** Sizes of base and commands, bytes. */
export interface LogSizes {
  readonly baseBytes: number
  readonly commandBytes: number
}

/** Whether the next start gains more than the rewrite costs. Pure. */
export function isWorthRewriting({ baseBytes, commandBytes }: LogSizes): boolean {
  return commandBytes >= MIN_COMMAND_BYTES && commandBytes >= baseBytes * MIN_SHARE_OF_BASE
}

/** The engine and its directory. */
export interface LogTarget {
  readonly address: ControlAddress
  /** The member's directory. */
  readonly dir: string
  readonly clock: Clock
}

/** Rewrites the log of a running engine if that pays. Resolves when the new log is in place. */
export async function compactLog(target: LogTarget): Promise<void> {
  if (isWorthRewriting(await sizesOf(join(target.dir, LOG_DIRECTORY)))) await rewriteLog(target)
}

async function rewriteLog({ address, clock }: LogTarget): Promise<void> {
  await withControl(address, async (engine) => {
    await engine.call('BGREWRITEAOF')
    await waitUntilWritten(engine, clock)
  })
}

/**
 * Rejects with `store_full` while an engine has acknowledged writes that it could not log. The engine retries each second;
 * if it is stopped before, these writes are lost.
 */
export async function requireLogged(address: ControlAddress): Promise<void> {
  // An engine that does not answer has logged the writes that it acknowledged before.
  const [info = ''] = await askEngine(address, [['INFO', 'persistence']]).catch(() => [])
  if (/^aof_last_write_status:err/m.test(info)) throw new HomeportError('store_full', {})
}

/** Minimum space a rewrite must free. */
const MIN_FREED_BYTES = 64 * 1024

/** Maximum bytes of a key in a base besides its name and value, such as its expiry. */
const KEY_OVERHEAD_BYTES = 16

/** Whether a rewrite frees enough space. Pure. */
export function freesEnough(logBytes: number, newLogBytes: number): boolean {
  return logBytes - newLogBytes >= Math.max(MIN_FREED_BYTES, logBytes / 4)
}

/** Maximum size of a new log, from the reply to INFO. Pure. */
export function newLogBytes(info: string): number {
  const heldBytes = usedBytesIn(info) - numberIn(info, 'used_memory_startup')
  // Key tables are not in a base; with short values they are half of the memory.
  const keys = Number(/^db0:keys=(\d+)/m.exec(info)?.[1] ?? 0)
  const writtenBytes = numberIn(info, 'used_memory_dataset') + keys * KEY_OVERHEAD_BYTES
  return Math.max(0, Math.min(heldBytes, writtenBytes))
}

/**
 * Estimated maximum size of a snapshot of a running engine, bytes: the size of its data in memory, or of its log if that is
 * smaller, because the log has the same values. 0 when neither is known.
 */
export async function snapshotBytes(target: LogTarget): Promise<number> {
  const { baseBytes, commandBytes } = await sizesOf(join(target.dir, LOG_DIRECTORY))
  const heldBytes = await askEngine(target.address, [['INFO']]).then(
    ([info = '']) => newLogBytes(info),
    // A long script keeps the engine from answering.
    () => 0,
  )
  const known = [heldBytes, baseBytes + commandBytes].filter((bytes) => bytes > 0)
  return known.length === 0 ? 0 : Math.min(...known)
}

/** Result of `shrinkLog`. `lacks-space`: the old and the new log may not fit on the disk together. */
export type ShrinkResult =
  | { readonly kind: 'rewritten' }
  | { readonly kind: 'small' }
  | { readonly kind: 'lacks-space'; readonly neededBytes: number }

/** Rewrites the log of a running engine if that frees disk space. */
export async function shrinkLog(target: LogTarget, freeBytes: number): Promise<ShrinkResult> {
  const { baseBytes, commandBytes } = await sizesOf(join(target.dir, LOG_DIRECTORY))
  const [info = ''] = await askEngine(target.address, [['INFO']])
  const neededBytes = newLogBytes(info)
  if (!freesEnough(baseBytes + commandBytes, neededBytes)) return { kind: 'small' }
  if (neededBytes > freeBytes) return { kind: 'lacks-space', neededBytes }
  await rewriteLog(target)
  return { kind: 'rewritten' }
}

async function sizesOf(dir: string): Promise<LogSizes> {
  const sizes = { baseBytes: 0, commandBytes: 0 }
  for (const name of await readdir(dir).catch(() => [])) {
    const part = name.endsWith('.incr.aof') ? 'commandBytes' : 'baseBytes'
    sizes[part] += (await stat(join(dir, name)).catch(() => undefined))?.size ?? 0
  }
  return sizes
}

/** A rewrite is `scheduled` while a snapshot is being written. */
async function waitUntilWritten(engine: Redis, clock: Clock): Promise<void> {
  for (;;) {
    const info = await engine.info('persistence')
    if (!/^aof_rewrite_(?:in_progress|scheduled):1/m.test(info)) return
    await pause(clock, POLL_MS)
  }
}
