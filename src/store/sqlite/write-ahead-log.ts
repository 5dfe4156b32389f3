/**
 * Reads SQLite's write-ahead log: to find damage before SQLite opens it, and to measure its length.
 *
 * SQLite reads a log up to the first invalid frame and discards the rest, because after a power cut the rest is an
 * unacknowledged commit. If complete commits follow the invalid frame, however, the log is damaged, and SQLite would
 * silently discard acknowledged commits.
 *
 * The format (sqlite.org/fileformat2.html, section 4): a header of 32 bytes with two salts, then frames of 24 bytes plus a
 * page. Each frame repeats the salts and has a checksum over all earlier frames. The last frame of a commit has the new
 * size of the database.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { copyFile, mkdir, open, rename } from 'node:fs/promises'
import { endianness } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { codeOf, replaceFile, syncPath } from '../../base/index.js'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const MAGIC = 0x377f0682
const SMALLEST_PAGE = 512
const MAX_PAGE_SIZE = 65_536

/** Commits in a log that SQLite would discard. */
export interface LogDamage {
  /** Offset of the first invalid frame. */
  readonly atByte: number
  readonly sizeBytes: number
  /** Commits after it; undefined if the header is damaged, so that the number is unknown. */
  readonly lostCommits: number | undefined
}

type Sums = readonly [number, number]

/** The 32-bit words of a log, in the byte order given in its header. */
function wordsOf(bytes: Buffer, order: 'BE' | 'LE'): Uint32Array {
  const whole = bytes.length - (bytes.length % 4)
  const isReady = order === endianness() && bytes.byteOffset % 4 === 0
  const own = isReady ? bytes : Buffer.from(new Uint8Array(bytes.subarray(0, whole)).buffer)
  if (order !== endianness()) own.swap32()
  return new Uint32Array(own.buffer, own.byteOffset, whole / 4)
}

/** Continues the checksum of the log over more bytes. */
function sumOver(words: Uint32Array, fromByte: number, toByte: number, [first, second]: Sums): Sums {
  let one = first
  let other = second
  for (let at = fromByte / 4; at < toByte / 4; at += 2) {
    one = (one + (words[at] ?? 0) + other) >>> 0
    other = (other + (words[at + 1] ?? 0) + one) >>> 0
  }
  return [one, other]
}

const holds = (bytes: Buffer, at: number, [one, other]: Sums): boolean =>
  bytes.readUInt32BE(at) === one && bytes.readUInt32BE(at + 4) === other

/** Bytes of a log that are in memory at once: during a long read, the log may have grown to gigabytes. */
const BLOCK_BYTES = 4 * 2 ** 20

/** Damage in a log; undefined when SQLite reads all its commits. @throws the error of the file system. */
export async function damageOf(log: string): Promise<LogDamage | undefined> {
  const file = await open(log)
  try {
    const { size: sizeBytes } = await file.stat()
    // An empty log, or an incomplete first commit.
    if (sizeBytes < HEADER_BYTES + FRAME_HEADER_BYTES) return undefined
    const header = Buffer.alloc(HEADER_BYTES)
    await file.read(header, 0, HEADER_BYTES, 0)
    const check = LogCheck.of(header)
    if (!check) return { atByte: 0, sizeBytes, lostCommits: undefined }
    const block = Buffer.alloc(check.frameBytes * Math.ceil(BLOCK_BYTES / check.frameBytes))
    for (let at = HEADER_BYTES; ; ) {
      const { bytesRead } = await file.read(block, 0, block.length, at)
      const whole = bytesRead - (bytesRead % check.frameBytes)
      if (whole === 0) return check.damage(sizeBytes)
      check.add(block.subarray(0, whole), at)
      at += whole
    }
  } finally {
    await file.close()
  }
}

/** Verifies the frames of a log in order, and counts the commits after the first invalid one. */
class LogCheck {
  readonly frameBytes: number
  readonly #order: 'BE' | 'LE'
  readonly #salts: Buffer
  #sums: Sums
  #atByte: number | undefined
  #lostCommits = 0

  private constructor(frameBytes: number, order: 'BE' | 'LE', salts: Buffer, sums: Sums) {
    this.frameBytes = frameBytes
    this.#order = order
    this.#salts = salts
    this.#sums = sums
  }

  /** Undefined when the header is damaged. */
  static of(header: Buffer): LogCheck | undefined {
    const magic = header.readUInt32BE(0)
    const order = (magic & 1) === 1 ? 'BE' : 'LE'
    const pageBytes = header.readUInt32BE(8)
    const isKnown = (magic & ~1) === MAGIC && pageBytes >= SMALLEST_PAGE && pageBytes <= MAX_PAGE_SIZE
    const sums = sumOver(wordsOf(header, order), 0, FRAME_HEADER_BYTES, [0, 0])
    if (!isKnown || !holds(header, FRAME_HEADER_BYTES, sums)) return undefined
    return new LogCheck(FRAME_HEADER_BYTES + pageBytes, order, header.subarray(16, 24), sums)
  }

  /** Adds whole frames. @param from their place in the log. */
  add(frames: Buffer, from: number): void {
    const words = wordsOf(frames, this.#order)
    for (let at = 0; at < frames.length; at += this.frameBytes) {
      // Frames from before the log restarted have other salts.
      const isOfThisLog = frames.compare(this.#salts, 0, 8, at + 8, at + 16) === 0
      if (this.#atByte === undefined) {
        if (isOfThisLog && this.#continues(frames, words, at)) continue
        this.#atByte = from + at
      }
      if (isOfThisLog && frames.readUInt32BE(at + 4) !== 0) this.#lostCommits++
    }
  }

  #continues(frames: Buffer, words: Uint32Array, at: number): boolean {
    this.#sums = sumOver(words, at, at + 8, this.#sums)
    this.#sums = sumOver(words, at + FRAME_HEADER_BYTES, at + this.frameBytes, this.#sums)
    return holds(frames, at + 16, this.#sums)
  }

  damage(sizeBytes: number): LogDamage | undefined {
    if (this.#atByte === undefined || this.#lostCommits === 0) return undefined
    return { atByte: this.#atByte, sizeBytes, lostCommits: this.#lostCommits }
  }
}

/**
 * Checks the log of a store that no process has open. A damaged log is copied into `quarantine/` beside the store, because
 * opening the store discards it.
 * @returns a description of the damage; undefined if all of the log is readable.
 */
export async function inspectLog(store: string, atMs: number): Promise<string | undefined> {
  const log = `${store}-wal`
  const damage = await damageOf(log).catch((error: unknown) => {
    // SQLite reports whether the store can be opened without it.
    if (['ENOENT', 'EISDIR', 'EACCES'].includes(codeOf(error))) return undefined
    throw error
  })
  if (!damage) return undefined
  const { atByte, sizeBytes, lostCommits } = damage
  const name = basename(log)
  const what =
    lostCommits === undefined
      ? `the header of ${name} (${sizeBytes} bytes) is damaged, so none of its commits can be read`
      : `${lostCommits} commits after byte ${atByte} of ${name} (${sizeBytes} bytes) cannot be read`
  return `${what}; ${await copyToQuarantine(log, what, atMs)}`
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Copies the log as a quarantine entry, in the format of `fleet/data/quarantine-files.ts`. */
async function copyToQuarantine(log: string, reason: string, atMs: number): Promise<string> {
  const time = new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, '')
  const entry = join('quarantine', `${time}-store-${randomBytes(2).toString('hex')}`)
  const dir = join(dirname(log), entry)
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const note = {
      kind: 'store-log',
      databaseId: 'store',
      from: basename(log),
      reason: `${capitalized(reason)}.`,
      movedAt: atMs,
    }
    await replaceFile(join(dir, 'note.json'), `${JSON.stringify(note, null, 2)}\n`)
    await copyFile(log, join(dir, 'data.part'))
    await syncPath(join(dir, 'data.part'))
    await rename(join(dir, 'data.part'), join(dir, 'data'))
    for (const path of [dir, dirname(dir)]) await syncPath(path)
    return `a copy of it is in ${entry}`
  } catch (error) {
    return `it could not be copied to ${entry} (${codeOf(error)})`
  }
}

/**
 * The length of a write-ahead log, read from the file itself: SQLite overwrites an old log from its beginning, so the size
 * of the file is only the largest length so far. (Its shared memory has the length too, but opening and closing that file
 * would release SQLite's locks in the whole process.)
 */
export interface LogLength {
  /** Changes when the log restarts from its beginning. */
  readonly generation: string
  /** Pages since the last restart. */
  readonly frames: number
}

const SALT_BYTES = 8
/** Offsets of the salt: frames from before the last restart have a different one than the header. */
const SALT_IN_HEADER = 16
const SALT_IN_FRAME = 8
const PAGE_SIZE_IN_HEADER = 8

/** The length of a database's log; `undefined` when there is none. */
export function logLength(path: string): LogLength | undefined {
  let fd: number
  try {
    fd = openSync(`${path}-wal`, 'r')
  } catch {
    return undefined
  }
  try {
    return measure(fd)
  } finally {
    closeSync(fd)
  }
}

function measure(fd: number): LogLength | undefined {
  const header = bytesAt(fd, 0, HEADER_BYTES)
  if (!header) return undefined
  const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_IN_HEADER)
  const salt = header.subarray(SALT_IN_HEADER, SALT_IN_HEADER + SALT_BYTES)
  const isPresent = (frame: number): boolean =>
    bytesAt(fd, HEADER_BYTES + frame * frameBytes + SALT_IN_FRAME, SALT_BYTES)?.equals(salt) ?? false
  const most = Math.floor((fstatSync(fd).size - HEADER_BYTES) / frameBytes)
  return { generation: salt.toString('hex'), frames: firstWithout(most, isPresent) }
}

/** Binary search for the first number below `end` for which `has` is false; `end` when there is none. */
function firstWithout(end: number, has: (number: number) => boolean): number {
  let [low, high] = [0, end]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (has(middle)) low = middle + 1
    else high = middle
  }
  return low
}

function bytesAt(fd: number, position: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length)
  return readSync(fd, bytes, 0, length, position) === length ? bytes : undefined
}
