/**
 * Finds and ends engine processes that no launcher of this life answers for: those of an earlier life, or of a
 * launcher that was killed. An engine is known by its command line, which ends with a configuration file in our
 * databases directory; so there is no pid file that could be stale, missing or forged.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { basename, sep } from 'node:path'
import { promisify } from 'node:util'
import { type Clock, codeOf, pause } from '../base/index.js'
import { CONFIG_FILE } from './layout.js'

/** A process of the machine: its id, and its command line with single spaces between the words. */
interface FoundProcess {
  readonly pid: number
  readonly commandLine: string
}

const run = promisify(execFile)

const LOOK_AGAIN_MS = 10
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
 * Whether a command line is an engine's: a program named like an engine, then one of our configuration files, then
 * nothing. An editor or a `tail` on such a file is none. Pure.
 */
export function isEngineCommand(commandLine: string, databasesDir: string, binary: string): boolean {
  const at = commandLine.indexOf(` ${databasesDir}${sep}`)
  if (at < 0 || !commandLine.endsWith(sep + CONFIG_FILE)) return false
  const program = commandLine.slice(0, at)
  return program.endsWith(binary) || ENGINE_NAME.test(basename(program))
}

/** The ids of all processes that run on a configuration file beneath `databasesDir`. */
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

/** What `endEngines` needs to know. */
export interface EngineSearch {
  readonly databasesDir: string
  /** The program that engines are started from now; older ones are known by their name. */
  readonly binary: string
  /** How long an engine may take to end cleanly before it is killed. */
  readonly graceMs: number
  readonly clock: Clock
}

/**
 * Ends every engine found beneath a databases directory: asks, waits, kills after the grace, and returns only when a
 * look at the machine finds none. Because it looks again each time, an id that has passed to another program
 * meanwhile is not signalled.
 * @returns how many processes were found at first.
 */
export async function endEngines(search: EngineSearch): Promise<number> {
  const { databasesDir, binary, graceMs, clock } = search
  const first = await findEngines(databasesDir, binary)
  for (const pid of first) send(pid, 'SIGTERM')
  const killAtMs = clock.now() + graceMs
  for (let left = first; left.length > 0; left = await findEngines(databasesDir, binary)) {
    if (clock.now() >= killAtMs) for (const pid of left) send(pid, 'SIGKILL')
    await pause(clock, LOOK_AGAIN_MS)
  }
  return first.length
}
