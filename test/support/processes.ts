import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** A live process that belongs to a test. */
export interface FoundProcess {
  readonly pid: number
  readonly parentPid: number
  readonly command: string
}

const attempt = (read: () => string): string => {
  try {
    return read()
  } catch {
    return ''
  }
}

function describe(pid: number): Omit<FoundProcess, 'pid'> & { traces: string; isZombie: boolean } {
  const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')
  const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8'))
  const directory = attempt(() => readlinkSync(`/proc/${pid}/cwd`))
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  const [state, parentPid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const isZombie = state === 'Z'
  return { command, parentPid: Number(parentPid), traces: `${command}\n${environment}\n${directory}`, isZombie }
}

/**
 * Every live process whose command line, environment or working directory contains `mark`: the data directory of a
 * server, or a value its environment was marked with. Works where `/proc` exists; elsewhere it finds nothing.
 */
export function processesMarked(mark: string): FoundProcess[] {
  const names = attempt(() => readdirSync('/proc').join(' ')).split(' ')
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number)
  return pids
    .filter((pid) => pid !== process.pid)
    .map((pid) => ({ pid, ...describe(pid) }))
    .filter((found) => found.traces.includes(mark) && !found.isZombie)
    .map(({ pid, parentPid, command }) => ({ pid, parentPid, command }))
}

/** The engines with this working directory, without the children that they fork to write a snapshot. */
export function enginesIn(folder: string): FoundProcess[] {
  const found = processesMarked(folder)
  return found.filter(({ parentPid }) => !found.some(({ pid }) => pid === parentPid))
}
