/**
 * The room on the disk of the engines' files.
 *
 * ```
 *   ample ── less than the margin is free: the reserve is deleted ──▶ short
 *     ▲ ▲                                                               │
 *     │ └──── twice the margin and the reserve are free ────────────────┘
 *     │
 *     ├────── an engine cannot write: the reserve is deleted ──▶ refused
 *     └────── the reserve can be written ─────────────────────────┘
 * ```
 *
 * - ample: engines may write. A file holds the reserve, written when there was room for it.
 * - short: what needs more room is to be refused before it reaches an engine (`hasSpace`). The room of the reserve is
 *   there for what engines write down of deletions, also when something else has filled the disk to the last byte. An
 *   engine that could not write its log tries again by itself, once a second.
 * - refused: the same, although the disk has room: a quota is used up, which nothing but a refusal tells. Trying to write
 *   takes the room away that deletions need, so that is done now and then.
 */
import { open, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Timer } from '../base/index.js'
import type { FleetLogger } from './types.js'

const LOOK_MS = 1_000
/** With a quota that is used up, the reserve is tried so often. */
const RETRY_MS = 10_000
const MOST_MARGIN_BYTES = 64 * 2 ** 20
const MARGIN_SHARE = 1 / 64
const MOST_RESERVE_BYTES = 4 * 2 ** 20
/** A file system that squeezes what it is given would take nothing for zeros, so the reserve is of other bytes. */
const BLOCK_BYTES = 64 * 1024

/** What the room is judged by, bytes. Pure. */
export interface SpaceThresholds {
  /** Less than this is short. */
  readonly marginBytes: number
  readonly reserveBytes: number
  /** As much is ample again. */
  readonly ampleBytes: number
}

/** The marks of a disk of so many bytes. */
export function thresholdsOf(totalBytes: number): SpaceThresholds {
  const marginBytes = Math.min(MOST_MARGIN_BYTES, Math.floor(totalBytes * MARGIN_SHARE))
  const reserveBytes = Math.min(MOST_RESERVE_BYTES, marginBytes)
  return { marginBytes, reserveBytes, ampleBytes: 2 * marginBytes + reserveBytes }
}

/** What a room needs. */
export interface DiskSpaceOptions {
  /** Where the reserve lies, on the same disk as the files of engines. */
  readonly dataDir: string
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Whether anything runs that writes; otherwise nobody looks, unless room is short. */
  readonly isUsed: () => boolean
  /** Called now and then while room is short, with what is free, bytes. */
  readonly reclaimSpace: (freeBytes: number) => Promise<void>
}

/** See the top of this file. */
export class DiskSpace {
  readonly #options: DiskSpaceOptions
  readonly #file: string
  #state: 'ample' | 'short' | 'refused' = 'ample'
  #retryAtMs = 0
  #hasReserve = false
  /** At the last look. */
  #freeBytes = 0
  #timer: Timer | undefined
  #looking: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: DiskSpaceOptions) {
    this.#options = options
    this.#file = join(options.dataDir, 'reserve')
  }

  /** Whether engines may be given what needs more room. */
  get hasSpace(): boolean {
    return this.#state === 'ample'
  }

  /** Looks before any engine starts, and every second while engines run or room is short. */
  async start(): Promise<void> {
    this.#hasReserve = (await stat(this.#file).catch(() => undefined)) !== undefined
    if (await this.look()) await this.#ensureReserve()
    this.#lookLater()
  }

  /** Looks no more; the reserve stays for the next start. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#looking
  }

  /** Looks now. @returns whether there is room. */
  async look(): Promise<boolean> {
    this.#looking = this.#looking.then(() => this.#judge()).catch((error: unknown) => this.#onCheckFailed(error))
    await this.#looking
    return this.hasSpace
  }

  /** An engine could not write for lack of room. */
  reportNoSpace(): void {
    if (this.#state !== 'ample') return
    this.#state = 'refused'
    this.#retryAtMs = this.#options.clock.now() + RETRY_MS
    const message = 'an engine has no room to write, as with a quota that is used up: databases take only deletions'
    this.#options.logger.warn({}, message)
    this.#looking = this.#looking
      .then(() => this.#deleteReserve())
      .catch((error: unknown) => this.#onCheckFailed(error))
  }

  #lookLater(): void {
    if (this.#stopped) return
    this.#timer = this.#options.clock.after(LOOK_MS, () => {
      this.#lookAgain()
        .catch((error: unknown) => this.#onCheckFailed(error))
        .finally(() => this.#lookLater())
    })
  }

  async #lookAgain(): Promise<void> {
    if (this.hasSpace && !this.#options.isUsed()) return
    const hasSpace = await this.look()
    if (this.#stopped) return
    if (hasSpace) await this.#ensureReserve()
    else await this.#options.reclaimSpace(this.#freeBytes)
    if (this.#state === 'refused' && this.#options.clock.now() >= this.#retryAtMs) await this.#retry()
  }

  async #retry(): Promise<void> {
    this.#retryAtMs = this.#options.clock.now() + RETRY_MS
    await this.#ensureReserve()
    if (this.#hasReserve && this.#state === 'refused') this.#recover(this.#freeBytes)
  }

  async #judge(): Promise<void> {
    const { freeBytes, marks } = await this.#measure()
    if (this.#state !== 'short' && freeBytes < marks.marginBytes) await this.#enterShort(freeBytes)
    else if (this.#state === 'short' && freeBytes >= marks.ampleBytes) this.#recover(freeBytes)
    // With a quota nobody knows more than that the reserve was given back.
    this.#freeBytes = this.#state === 'refused' ? Math.min(freeBytes, marks.reserveBytes) : freeBytes
  }

  async #measure(): Promise<{ readonly freeBytes: number; readonly marks: SpaceThresholds }> {
    const { bavail, blocks, bsize } = await statfs(this.#options.dataDir)
    return { freeBytes: bavail * bsize, marks: thresholdsOf(blocks * bsize) }
  }

  async #enterShort(freeBytes: number): Promise<void> {
    this.#state = 'short'
    await this.#deleteReserve()
    this.#options.logger.warn({ freeBytes }, 'the disk is nearly full: databases take no more data, only deletions')
  }

  async #deleteReserve(): Promise<void> {
    this.#hasReserve = false
    await rm(this.#file, { force: true })
  }

  #recover(freeBytes: number): void {
    this.#state = 'ample'
    this.#options.logger.info({ freeBytes }, 'there is room on the disk again: databases take data')
  }

  async #ensureReserve(): Promise<void> {
    if (this.#hasReserve) return
    try {
      const { freeBytes, marks } = await this.#measure()
      if (freeBytes < marks.ampleBytes) return
      await writeReserve(this.#file, marks.reserveBytes)
      this.#hasReserve = true
    } catch (error) {
      // What cannot be written there can perhaps not be removed either.
      await rm(this.#file, { force: true }).catch(() => undefined)
      this.#onCheckFailed(error)
    }
  }

  #onCheckFailed(error: unknown): void {
    this.#options.logger.warn({ error }, 'the room on the disk cannot be looked at or kept')
  }
}

async function writeReserve(path: string, bytes: number): Promise<void> {
  const block = crypto.getRandomValues(Buffer.alloc(BLOCK_BYTES))
  const file = await open(path, 'w', 0o600)
  try {
    for (let left = bytes; left > 0; left -= BLOCK_BYTES) await file.write(block, 0, Math.min(left, BLOCK_BYTES))
  } finally {
    await file.close()
  }
}
