/**
 * Watches the free space of the disk with the engines' files.
 *
 * ```
 *   ample ── free space falls below the margin: delete the reserve ──▶ short
 *     ▲ ▲                                                                │
 *     │ └──── twice the margin and the reserve are free ─────────────────┘
 *     │
 *     ├─ read-only, or an engine cannot write: delete the reserve ─▶ refused
 *     └────── the reserve can be written again ─────────────────┘
 * ```
 *
 * - `ample`: engines may write. A reserve file was written when there was space for it.
 * - `short`: commands that need more space must be refused before they reach an engine (`hasSpace`). The deleted reserve
 *   leaves space in which engines log deletions, even if something else has filled the disk to the last byte. An engine
 *   that could not write its log retries once a second by itself.
 * - `refused`: like `short`, although the disk has space. The disk is read-only, as after a disk error, or a quota is
 *   exhausted, which only a failed write shows. A test write takes the space that deletions need, so it is rare.
 */
import { access, constants, open, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, codeOf, type Timer } from '../base/index.js'
import type { FleetLogger } from './types.js'

const CHECK_MS = 1_000
/**
 * Checks between two attempts to write the reserve after one has failed: an exhausted quota lasts, and each attempt writes
 * megabytes.
 */
const CHECKS_PER_TRY = 10
const MAX_MARGIN_BYTES = 64 * 2 ** 20
const MARGIN_SHARE = 1 / 64
const MAX_RESERVE_BYTES = 4 * 2 ** 20
/** The reserve has random bytes, because a compressing file system stores zeros in no space. */
const BLOCK_BYTES = 64 * 1024

/** Thresholds of free space, bytes. */
export interface SpaceThresholds {
  /** Less free space than this is `short`. */
  readonly marginBytes: number
  readonly reserveBytes: number
  /** Free space from which on the state is `ample` again. */
  readonly ampleBytes: number
}

/** The thresholds of a disk of this size. */
export function thresholdsOf(totalBytes: number): SpaceThresholds {
  const marginBytes = Math.min(MAX_MARGIN_BYTES, Math.floor(totalBytes * MARGIN_SHARE))
  const reserveBytes = Math.min(MAX_RESERVE_BYTES, marginBytes)
  return { marginBytes, reserveBytes, ampleBytes: 2 * marginBytes + reserveBytes }
}

/** Collaborators and settings of the watch. */
export interface DiskSpaceOptions {
  /** Directory of the reserve, on the disk of the engines' files. */
  readonly dataDir: string
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Whether engines run. Otherwise the disk is checked only while space is short. */
  readonly isInUse: () => boolean
  /** Called every second while space is short, with the free bytes. */
  readonly reclaimSpace: (freeBytes: number) => Promise<void>
}

/** See the top of this file. */
export class DiskSpace {
  readonly #options: DiskSpaceOptions
  readonly #file: string
  #state: 'ample' | 'short' | 'refused' = 'ample'
  /** Checks are counted, because the clock may be set back. */
  #checksUntilTry = 0
  #hasReserve = false
  /** Why the reserve could not be written, logged once. */
  #reserveProblem = ''
  /** Free space at the last check. */
  #freeBytes = 0
  #marginBytes = 0
  #timer: Timer | undefined
  #checking: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: DiskSpaceOptions) {
    this.#options = options
    this.#file = join(options.dataDir, 'reserve')
  }

  /** Whether engines may receive commands that need more space. */
  get hasSpace(): boolean {
    return this.#state === 'ample'
  }

  /** Checks before any engine starts, then every second while engines run or space is short. */
  async start(): Promise<void> {
    this.#hasReserve = (await stat(this.#file).catch(() => undefined)) !== undefined
    if (await this.check()) await this.#ensureReserve()
    this.#scheduleCheck()
  }

  /** Stops checking; the reserve stays for the next start. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#checking
  }

  /** Checks now. @returns whether there is space, and still is after `neededBytes` more are written. */
  async check(neededBytes = 0): Promise<boolean> {
    this.#checking = this.#checking
      .then(() => this.#updateState())
      .catch((error: unknown) => this.#onCheckFailed(error))
    await this.#checking
    return this.hasSpace && this.#freeBytes - neededBytes >= this.#marginBytes
  }

  /** Reports that an engine could not write for lack of space. */
  reportNoSpace(): void {
    if (this.#state !== 'ample') return
    this.#options.logger.warn('disk_write_refused', {})
    this.#refuse()
  }

  #refuse(): void {
    this.#state = 'refused'
    this.#checksUntilTry = CHECKS_PER_TRY
    this.#checking = this.#checking
      .then(() => this.#deleteReserve())
      .catch((error: unknown) => this.#onCheckFailed(error))
  }

  #scheduleCheck(): void {
    if (this.#stopped) return
    this.#timer = this.#options.clock.after(CHECK_MS, () => {
      this.#checkPeriodically()
        .catch((error: unknown) => this.#onCheckFailed(error))
        .finally(() => this.#scheduleCheck())
    })
  }

  async #checkPeriodically(): Promise<void> {
    if (this.hasSpace && !this.#options.isInUse()) return
    const hasSpace = await this.check()
    if (this.#stopped) return
    if (!hasSpace) await this.#options.reclaimSpace(this.#freeBytes)
    if (this.#state === 'short' || --this.#checksUntilTry > 0) return
    await this.#ensureReserve()
    if (this.#hasReserve && this.#state === 'refused') this.#recover(this.#freeBytes)
  }

  async #updateState(): Promise<void> {
    const { freeBytes, marks } = await this.#measure()
    if (this.#state !== 'short' && freeBytes < marks.marginBytes) await this.#enterShort(freeBytes)
    else if (this.#state === 'short' && freeBytes >= marks.ampleBytes) this.#recover(freeBytes)
    else if (this.#state === 'ample' && (await isReadOnly(this.#options.dataDir))) {
      this.#options.logger.error('disk_read_only', {})
      this.#refuse()
    }
    this.#marginBytes = marks.marginBytes
    // With a quota, only the space of the deleted reserve is certain.
    this.#freeBytes = this.#state === 'refused' ? Math.min(freeBytes, marks.reserveBytes) : freeBytes
  }

  async #measure(): Promise<{ readonly freeBytes: number; readonly marks: SpaceThresholds }> {
    const { bavail, blocks, bsize } = await statfs(this.#options.dataDir)
    return { freeBytes: bavail * bsize, marks: thresholdsOf(blocks * bsize) }
  }

  async #enterShort(freeBytes: number): Promise<void> {
    this.#state = 'short'
    await this.#deleteReserve()
    this.#options.logger.warn('disk_nearly_full', { freeBytes })
  }

  async #deleteReserve(): Promise<void> {
    this.#hasReserve = false
    await rm(this.#file, { force: true })
  }

  #recover(freeBytes: number): void {
    this.#state = 'ample'
    this.#options.logger.info('disk_free_again', { freeBytes })
  }

  async #ensureReserve(): Promise<void> {
    if (this.#hasReserve) return
    try {
      const { freeBytes, marks } = await this.#measure()
      if (freeBytes < marks.ampleBytes) return
      await writeReserve(this.#file, marks.reserveBytes)
      this.#hasReserve = true
      this.#reserveProblem = ''
    } catch (error) {
      this.#checksUntilTry = CHECKS_PER_TRY
      // A file that cannot be written may not be removable either.
      await rm(this.#file, { force: true }).catch(() => undefined)
      if (String(error) !== this.#reserveProblem) this.#onCheckFailed(error)
      this.#reserveProblem = String(error)
    }
  }

  #onCheckFailed(error: unknown): void {
    this.#options.logger.warn('disk_check_failed', { error })
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

/** A read-only file system refuses even a user who may write everything, such as root. */
async function isReadOnly(dir: string): Promise<boolean> {
  return await access(dir, constants.W_OK).then(
    () => false,
    (error: unknown) => codeOf(error) === 'EROFS',
  )
}
