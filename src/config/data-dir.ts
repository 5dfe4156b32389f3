import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { chmod, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, keepForever, makeFolderSync, openSqlite, type SqliteDatabase, userId } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

/**
 * The lock is an exclusive record lock of the kernel on the file `lock`. SQLite takes it, because Node has no function
 * for it. The kernel releases it when the process ends, even by SIGKILL, so a lock is never stale and no process ids are
 * compared. It works across users and containers that share the directory on one machine, and child processes do not
 * inherit it.
 *
 * `lock.pid` is only for the error message.
 */
const LOCK_FILE = 'lock'
const PID_FILE = 'lock.pid'

const PRIVATE_UMASK = 0o077
/** Permission bits of group and others. */
const OTHERS = 0o077

/** Longer than `homeport doctor` holds the lock, shorter than a person notices. */
const LOCK_WAIT_MS = 250

/** A held lock. */
export interface DataDirLock {
  /** Unlocks the directory. May be called more than once. */
  release(): void
}

/** Result of `inspectDataDir`. */
export type DataDirState =
  | { readonly state: 'missing' }
  | { readonly state: 'free'; readonly mode: number }
  | { readonly state: 'locked'; readonly mode: number; readonly pid: number | undefined }
  | { readonly state: 'unusable'; readonly reason: string }

/**
 * Creates the data directory (mode 0700) if it is missing, and locks it for this process.
 * @throws HomeportError `data_dir_locked` when another process holds the lock, `data_dir_unusable` otherwise.
 */
export function lockDataDir(directory: string): DataDirLock {
  create(directory)
  const lock = openLock(directory)
  try {
    lock.exec('BEGIN EXCLUSIVE')
    writeFileSync(join(directory, PID_FILE), `${process.pid}\n`, { mode: 0o600 })
  } catch (error) {
    lock.close()
    throw isBusy(error)
      ? new HomeportError('data_dir_locked', { directory, pid: lockHolder(directory) })
      : unusable(directory, error)
  }
  return { release: () => release(lock, directory) }
}

/**
 * Sets the umask, so that only the owner can access files that this process and its children create: engines, SQLite
 * and others request modes that everybody may read.
 */
export function keepFilesPrivate(): void {
  process.umask(PRIVATE_UMASK)
}

/**
 * Removes the permissions of other users from files in the data directory that earlier versions or other tools left
 * readable. It does not follow links and skips files of other users.
 * @returns the number of files and directories changed.
 */
export async function closeDataDir(directory: string): Promise<number> {
  let closed = 0
  for (const path of await pathsOpenToOthers(directory)) {
    await chmod(path, (await lstat(path)).mode & ~OTHERS & 0o777).then(
      () => closed++,
      () => undefined,
    )
  }
  return closed
}

/** Paths in the data directory that other users may read or enter. Files may come and go during the search. */
export async function pathsOpenToOthers(directory: string): Promise<string[]> {
  const found: string[] = []
  const look = async (path: string): Promise<void> => {
    const stats = await lstat(path).catch(() => undefined)
    if (!stats || stats.isSymbolicLink() || stats.uid !== userId()) return
    if ((stats.mode & OTHERS) !== 0) found.push(path)
    if (!stats.isDirectory()) return
    for (const name of await readdir(path).catch(() => [])) await look(join(path, name))
  }
  await look(directory)
  return found
}

/** Inspects the data directory without changing anything. */
export function inspectDataDir(directory: string): DataDirState {
  try {
    const found = statSync(directory, { throwIfNoEntry: false })
    if (found === undefined) return { state: 'missing' }
    if (!found.isDirectory()) return { state: 'unusable', reason: 'it is not a directory' }
    const mode = found.mode & 0o777
    return isLocked(directory) ? { state: 'locked', mode, pid: lockHolder(directory) } : { state: 'free', mode }
  } catch (error) {
    return { state: 'unusable', reason: reasonOf(error) }
  }
}

function create(directory: string): void {
  try {
    // The umask may have narrowed the mode.
    if (makeFolderSync(directory)) chmodSync(directory, 0o700)
  } catch (error) {
    throw unusable(directory, error)
  }
}

function openLock(directory: string): SqliteDatabase {
  try {
    // The garbage collector closes a file that nobody refers to, which would release the lock.
    return keepForever(openSqlite(join(directory, LOCK_FILE), { busyTimeoutMs: LOCK_WAIT_MS }))
  } catch (error) {
    throw unusable(directory, error)
  }
}

function release(lock: SqliteDatabase, directory: string): void {
  if (!lock.isOpen) return
  rmSync(join(directory, PID_FILE), { force: true })
  lock.close()
}

function isLocked(directory: string): boolean {
  const path = join(directory, LOCK_FILE)
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false
  const lock = openSqlite(path, { readOnly: true, busyTimeoutMs: 0 })
  try {
    lock.exec('SELECT count(*) FROM sqlite_schema')
    return false
  } catch (error) {
    if (isBusy(error)) return true
    throw error
  } finally {
    lock.close()
  }
}

function lockHolder(directory: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(directory, PID_FILE), 'utf8'))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

const DRIVER_MISSING = 'SQLITE_DRIVER_MISSING'

const isBusy = (error: unknown): boolean => codeOf(error).startsWith('SQLITE_BUSY')

function unusable(directory: string, error: unknown): HomeportError {
  if (codeOf(error) === DRIVER_MISSING)
    return new HomeportError('sqlite_driver_missing', { node: process.versions.node })
  return new HomeportError('data_dir_unusable', { directory, reason: reasonOf(error) }, { cause: error })
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not change it',
  EEXIST: 'a file with this name exists',
  ENOTDIR: 'a part of the path is a file',
  ENOENT: 'it cannot be created there, or it is a symbolic link to a missing place',
  ELOOP: 'its symbolic links form a loop',
  ENAMETOOLONG: 'its path is too long',
  EMFILE: 'this process may not open more files (`ulimit -n`)',
  ENOSPC: 'the disk is full, or has no inode left (`df -i`)',
  EDQUOT: 'the quota on the disk is used up',
  EROFS: 'the file system is read-only',
  [DRIVER_MISSING]: 'the SQLite driver is missing',
  SQLITE_CANTOPEN: 'this user may not write there, or no more files can be created (`df -i`, `ulimit -n`)',
  SQLITE_READONLY: 'this user may not write there',
  SQLITE_FULL: 'the disk is full',
}

function reasonOf(error: unknown): string {
  const code = codeOf(error)
  return REASONS[code] ?? (code === '' ? String(error) : code)
}
