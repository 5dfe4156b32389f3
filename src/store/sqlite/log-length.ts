import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/**
 * How long a write-ahead log is, read from the file itself: SQLite overwrites an old log from its beginning, so the size
 * of the file tells only how long it has ever been. (Its shared memory knows too, but opening and closing that file
 * would take SQLite's locks away from the whole process.)
 */
export interface LogLength {
  /** Differs between two lives of the log. */
  readonly life: string
  /** Pages in its present life. */
  readonly frames: number
}

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const SALT_BYTES = 8
/** Where the salt stands: the header has that of the present life, frames of an earlier one another. */
const SALT_IN_HEADER = 16
const SALT_IN_FRAME = 8
const PAGE_SIZE_IN_HEADER = 8

/** The length of the log of a database; `undefined` when there is none. */
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
  return { life: salt.toString('hex'), frames: firstWithout(most, isPresent) }
}

/** The first number below `end` that lacks what all before it have; `end` when there is none. */
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
