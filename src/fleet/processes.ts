/**
 * Finds and ends leftover engine processes: those of an earlier run of Homeport, or of a launcher that was killed. An
 * engine is recognized by its command line, which ends with a configuration file in our databases directory; so there
 * is no pid file that could be stale, missing or forged.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { basename, sep } from 'node:path'
import { promisify } from 'node:util'
import { type Clock, codeOf, pause } from '../base/index.js'
import { CONFIG_FILE } from './layout.js'

/** A process: its id, and its command line with single spaces. */
interface FoundProcess {
  readonly pid: number
  readonly commandLine: string
}

const run = promisify(execFile)

const POLL_MS = 10
const PS_OUTPUT_LIMIT_BYTES = 64 * 1024 * 1024
const ENGINE_NAME = /redis|valkey/

async function readCommandLine(pid: number): Promise<FoundProcess | undefined> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return text === '' ? undefined : { pid, commandLine: text.replaceAll('\0', ' ').trim() }
}

async function listFromProc(): Promise<readonly FoundProcess[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0)
  const found = await Promise.all(pids.map(readCommandLine))
  return found.filter((process) => process !== undefined)
}

async function listFromPs(): Promise<readonly FoundProcess[]> {
  const { stdout } = await run('ps', ['-axo', 'pid=,command='], { maxBuffer: PS_OUTPUT_LIMIT_BYTES })
  return [...stdout.matchAll(/^ *(\d+) (.*)$/gm)].map(([, pid, line]) => ({
    pid: Number(pid),
    commandLine: line ?? '',
  }))
}

/**
 * Whether a command line is an engine: a program with the name of an engine, one of our configuration files, and
 * nothing else. An editor or `tail` on such a file does not match. Pure.
 */
export function isEngineCommand(commandLine: string, databasesDir: string, binary: string): boolean {
  const at = commandLine.indexOf(` ${databasesDir}${sep}`)
  if (at < 0 || !commandLine.endsWith(sep + CONFIG_FILE)) return false
  const program = commandLine.slice(0, at)
  return program.endsWith(binary) || ENGINE_NAME.test(basename(program))
}

/** Ids of all processes that run with a configuration file below `databasesDir`. */
async function findEngines(databasesDir: string, binary: string): Promise<readonly number[]> {
  const processes = process.platform === 'linux' ? await listFromProc() : await listFromPs()
  return processes.filter((found) => isEngineCommand(found.commandLine, databasesDir, binary)).map(({ pid }) => pid)
}

function send(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

/** Parameters of `endEngines`. */
export interface EngineSearch {
  readonly databasesDir: string
  /** The current engine program; older ones are recognized by name. */
  readonly binary: string
  /** Time to end cleanly before it is killed, milliseconds. */
  readonly graceMs: number
  readonly clock: Clock
}

/**
 * Ends every engine below a databases directory: asks it to end, waits, kills after the grace, and returns when a new
 * search finds none. Because it searches again each time, it never signals an id that was reused by another program.
 * @returns how many processes the first search found.
 */
export async function endEngines(search: EngineSearch): Promise<number> {
  const { databasesDir, binary, graceMs, clock } = search
  const first = await findEngines(databasesDir, binary)
  for (const pid of first) send(pid, 'SIGTERM')
  let isLate = false
  const late = clock.after(graceMs, () => {
    isLate = true
  })
  for (let left = first; left.length > 0; left = await findEngines(databasesDir, binary)) {
    if (isLate) for (const pid of left) send(pid, 'SIGKILL')
    await pause(clock, POLL_MS)
  }
  late.cancel()
  return first.length
}
