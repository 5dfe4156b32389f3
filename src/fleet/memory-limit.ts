/**
 * Limits the memory of engine processes. An engine limits its data itself, but not what a script allocates or replies
 * that nobody reads: without a limit on the process, one tenant could take the memory of the machine. A script that
 * reaches the limit fails with `not enough memory` and the engine continues; an engine that reaches it otherwise ends
 * and is restarted.
 *
 * The limit is set after the engine has loaded, so it never keeps data from loading.
 */
import { readFile } from 'node:fs/promises'
import { usableMemoryBytes } from '../base/index.js'
import { unreadLimit } from './engine-config.js'
import type { Launcher } from './launcher/client.js'
import { usableProgram } from './programs.js'
import type { FleetLogger } from './types.js'

const KIB = 1024
/** Data takes more memory than it counts: fragmentation, growing tables, copies being sent. */
const MEMORY_PER_DATA = 2
/** Minimum growth above the memory in use when the limit is set. */
const MIN_GROWTH_BYTES = 2 ** 28
/** Largest share of the memory of the machine. */
const MAX_MACHINE_SHARE = 3 / 4

/** Input of the limit, bytes. */
export interface MemoryFacts {
  /** Limit of its data. */
  readonly maxMemoryBytes: number
  /** Memory in use now. */
  readonly presentBytes: number
  /** Memory of the machine. */
  readonly machineBytes: number
}

/** The limit of an engine process, bytes. Pure. */
export function processLimit({ maxMemoryBytes, presentBytes, machineBytes }: MemoryFacts): number {
  const desired = MEMORY_PER_DATA * maxMemoryBytes + unreadLimit(maxMemoryBytes)
  return Math.floor(Math.max(Math.min(desired, machineBytes * MAX_MACHINE_SHARE), presentBytes + MIN_GROWTH_BYTES))
}

/** Limits the memory of running engines. */
export interface MemoryLimiter {
  /**
   * Limits the process of an engine, derived from the limit of its data. Never rejects: an engine also runs without a
   * limit.
   */
  limit(pid: number, maxMemoryBytes: number): Promise<void>
}

/** Collaborators of a limiter. */
export interface MemoryLimiterOptions {
  readonly launcher: Pick<Launcher, 'spawn'>
  readonly logger: FleetLogger
}

/** Creates a limiter. Without `prlimit` on this system, it logs that once and does nothing. */
export function createMemoryLimiter({ launcher, logger }: MemoryLimiterOptions): MemoryLimiter {
  let hasWarned = false
  const limit = async (pid: number, maxMemoryBytes: number): Promise<void> => {
    const tool = await findTool()
    if (tool === undefined) {
      if (!hasWarned) logger.warn('engine_memory_limit_missing', {})
      hasWarned = true
      return
    }
    const facts = { maxMemoryBytes, presentBytes: await presentBytes(pid), machineBytes: usableMemoryBytes() }
    const bytes = processLimit(facts)
    const setting = await launcher.spawn(tool, ['--pid', `${pid}`, `--data=${bytes}`])
    const { code, output } = await setting.exited
    if (code !== 0) throw new Error(`prlimit ended with ${code}: ${output}`)
  }
  return {
    limit: (pid, maxMemoryBytes) =>
      limit(pid, maxMemoryBytes).catch(async (error: unknown) => {
        // An engine that has ended needs no limit.
        if (await isRunning(pid)) logger.warn('engine_memory_not_limited', { error, pid })
      }),
  }
}

/**
 * Command prefix that limits a process from its start; empty without a limit or without the tool. For engines that load
 * untrusted data, which may expand a hundredfold while loading.
 */
export async function memoryLimitPrefix(bytes: number | undefined): Promise<readonly string[]> {
  const tool = bytes === undefined ? undefined : await findTool()
  return tool === undefined ? [] : [tool, `--data=${bytes}`, '--']
}

/** `prlimit`, if this system has it and lets us use it. */
const findTool = (): Promise<string | undefined> =>
  usableProgram('prlimit', ['--data=unlimited:unlimited', '/bin/sh', '-c', ':'])

/** Memory that counts against the limit. */
async function presentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const [, kib] = /^VmData:\s*(\d+) kB/m.exec(status) ?? []
  if (kib === undefined) throw new Error('the system does not report the memory of the engine')
  return Number(kib) * KIB
}

function isRunning(pid: number): Promise<boolean> {
  return readFile(`/proc/${pid}/status`, 'utf8').then(
    () => true,
    () => false,
  )
}
