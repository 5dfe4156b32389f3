import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'

const OWNER_ONLY = 0o600

/**
 * Closes the file of a store, and the log beside it, to other users of the machine, also where they may enter the
 * directory: it holds passwords and signing keys. A new file is made; SQLite gives what it makes beside it the same mode.
 * A file of another user stays as it is, and one that cannot be made is left for SQLite to complain about.
 */
export function closeToOthers(path: string): void {
  // An existing file is never opened here: closing it would drop the locks that SQLite holds on it in this process.
  if (!existsSync(path)) attempt(() => closeSync(openSync(path, 'ax', OWNER_ONLY)))
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    if (existsSync(file)) attempt(() => chmodSync(file, OWNER_ONLY))
  }
}

function attempt(work: () => void): void {
  try {
    work()
  } catch {
    // See above: whether the store can be used is for SQLite to tell.
  }
}
