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

/** Whether the process names the mark. Most do not, and kernel threads have no command line, so cheap checks come first. */
function names(folder: string, command: string, mark: string): boolean {
  return (
    command !== '' &&
    (command.includes(mark) ||
      attempt(() => readlinkSync(`${folder}/cwd`)).includes(mark) ||
      attempt(() => readFileSync(`${folder}/environ`, 'utf8')).includes(mark))
  )
}

/** The process if it names the mark and has not ended. */
function found(pid: number, mark: string): FoundProcess | undefined {
  const folder = `/proc/${pid}`
  const command = attempt(() => readFileSync(`${folder}/cmdline`, 'utf8')).replaceAll('\0', ' ')
  if (!names(folder, command, mark)) return undefined
  const stat = attempt(() => readFileSync(`${folder}/stat`, 'utf8'))
  const [state, parentPid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return !state || state === 'Z' ? undefined : { pid, parentPid: Number(parentPid), command }
}

/**
 * Every live process whose command line, environment or working directory contains `mark`: the data directory of a
 * server, or a value its environment was marked with. Works where `/proc` exists; elsewhere it finds nothing.
 */
export function processesMarked(mark: string): FoundProcess[] {
  const entries = attempt(() => readdirSync('/proc').join(' ')).split(' ')
  const pids = entries.filter((name) => /^\d+$/.test(name)).map(Number)
  return pids
    .filter((pid) => pid !== process.pid)
    .map((pid) => found(pid, mark))
    .filter((process) => process !== undefined)
}

/** The engines with this working directory, without the children that they fork to write a snapshot. */
export function enginesIn(folder: string): FoundProcess[] {
  const all = processesMarked(folder)
  return all.filter(({ parentPid }) => !all.some(({ pid }) => pid === parentPid))
}
