/**
 * Puts the temporary files of a run into memory. Tests create thousands of small files: a PostgreSQL database alone has a
 * thousand, and each commit of SQLite waits for the disk. In memory, a new database costs a fifth of the CPU time.
 *
 * It does so only if the memory file system is large enough and allows programs to run from it (containers often allow 64
 * MiB and no programs). Otherwise, and when `TMPDIR` is set, temporary files stay in their usual folder.
 */
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
const PREFIX = 'hp-run-'
/** A whole run uses less than half of it. */
const NEEDED_BYTES = 3 * 2 ** 30

/** Runs once before all tests. Returns a function that deletes the folder. */
export default function setup(): (() => void) | undefined {
  if (process.env.TMPDIR !== undefined || !isSuitable()) return undefined
  deleteLeftovers()
  const folder = join(MEMORY, `${PREFIX}${process.pid}`)
  // Other users must be able to enter the folder, because PostgreSQL does not run as root.
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  process.env.TMPDIR = folder
  return () => {
    delete process.env.TMPDIR
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function isSuitable(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return Math.min(bavail * bsize, freemem()) >= NEEDED_BYTES && mayRunPrograms()
  } catch {
    return false
  }
}

function mayRunPrograms(): boolean {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
  const [, , , options = 'noexec'] = mounts.find((line) => line.split(' ')[1] === MEMORY)?.split(' ') ?? []
  return !options.split(',').includes('noexec')
}

/** Deletes the folders of runs that were killed. */
function deleteLeftovers(): void {
  for (const name of readdirSync(MEMORY)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length))))
      rmSync(join(MEMORY, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
