import { readdirSync, readFileSync } from 'node:fs'
import { processesMarked } from '../../test/support/index.js'

/** Processor time of a server, microseconds (Linux only). */
export interface ServerTime {
  readonly mainUs: number
  /** Its other threads, its launcher and its engines. */
  readonly otherUs: number
}

/** A tick in /proc, which does not depend on the kernel's timer. */
const TICK_US = 10_000

/** The processor time so far of a server and of every process that names its data directory. */
export function serverTime(pid: number, dataDir: string): ServerTime {
  const mainUs = timeIn(`/proc/${pid}/task/${pid}/stat`)
  const others = processesMarked(dataDir).filter((found) => found.pid !== pid)
  const allUs = others.reduce((sum, found) => sum + tasksUs(found.pid), tasksUs(pid))
  return { mainUs, otherUs: allUs - mainUs }
}

/** The processor time so far of all live processes that name a folder, microseconds. */
export const markedTimeUs = (folder: string): number =>
  processesMarked(folder).reduce((sum, { pid }) => sum + tasksUs(pid), 0)

function tasksUs(pid: number): number {
  const folder = `/proc/${pid}/task`
  return readdirSync(folder).reduce((sum, task) => sum + timeIn(`${folder}/${task}/stat`), 0)
}

/** Processor time in a stat file, microseconds; 0 if the thread has just ended. */
function timeIn(path: string): number {
  try {
    const stat = readFileSync(path, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_US
  } catch {
    return 0
  }
}
