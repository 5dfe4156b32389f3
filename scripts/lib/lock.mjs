/** Lets one process at a time do a piece of work, among those that share a folder. */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

const LOOK_MS = 100
/** Interval at which the holder updates the time of the lock file. */
const BEAT_MS = 1_000
/**
 * A holder that has not updated the file for this long is gone. Its process id alone is no proof: the holder may be on
 * another machine, and a new process may have the id.
 */
const SILENT_MS = 30_000

/**
 * Runs `work` while this process alone holds the lock file; waits for other holders. It takes over the lock of a process
 * that has ended. `onWait` is called once, with the pid of the holder, before the first wait.
 */
export async function withLock(path, work, { onWait = () => {} } = {}) {
  const own = `${process.pid} ${hostname()} ${Math.random()}`
  for (let hasWaited = false; !take(path, own); hasWaited = true) {
    const holder = read(path)
    if (holder === undefined) continue
    if (isGone(path, holder)) {
      removeLockOf(path, holder)
      continue
    }
    if (!hasWaited) onWait(holder.split(' ')[0])
    await pause(LOOK_MS)
  }
  const beat = setInterval(() => touch(path), BEAT_MS)
  try {
    return await work()
  } finally {
    clearInterval(beat)
    if (read(path) === own) rmSync(path, { force: true })
  }
}

function take(path, own) {
  try {
    writeFileSync(path, own, { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function touch(path) {
  const now = new Date()
  try {
    utimesSync(path, now, now)
  } catch {
    // This process stalled, and another one took over the lock. Then both do the work.
  }
}

function isGone(path, holder) {
  const [pid, host] = holder.split(' ')
  try {
    if (Date.now() - statSync(path).mtimeMs > SILENT_MS) return true
    // If the file is empty, its holder is about to write it.
    if (holder !== '' && host === hostname()) process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return error.code === 'ESRCH'
  }
}

/** Removes the lock of a holder that is gone, unless another process has meanwhile removed it and taken the lock. */
function removeLockOf(path, holder) {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    if (read(aside) !== holder) linkSync(aside, path)
  } catch {
    // Another process was faster.
  }
  rmSync(aside, { force: true })
}
