/**
 * How much memory the process of one engine may have. The engine bounds its data by itself, but not what a script builds up
 * while it runs, nor replies that nobody reads: without a bound of the process the memory of the machine could be that of
 * one tenant. A script that comes to it fails with `not enough memory`, and the engine goes on; an engine that comes to it
 * with anything else ends by itself and is started again.
 *
 * The bound is set when the engine has read its data, so it can never keep data from being loaded.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { promisify } from 'node:util'
import { unreadLimit } from './engine-config.js'
import type { Launcher } from './launcher/client.js'
import type { FleetLogger } from './types.js'

const run = promisify(execFile)
const KIB = 1024
/** Data takes more memory than it counts: what was freed in between, tables that grow, copies on their way out. */
const SPACE_PER_DATA = 2
/** An engine may always grow by so much beyond what it has when the bound is set. */
const LEAST_GROWTH_BYTES = 2 ** 28
/** No engine gets more of the memory of the machine. */
const MOST_SHARE = 3 / 4

/** What the bound of an engine follows from, bytes. */
export interface MemoryFacts {
  /** Bound of its data. */
  readonly maxMemoryBytes: number
  /** What it has now. */
  readonly presentBytes: number
  /** Of the whole machine. */
  readonly machineBytes: number
}

/** The bound of an engine's process, bytes. Pure. */
export function processLimit({ maxMemoryBytes, presentBytes, machineBytes }: MemoryFacts): number {
  const wanted = SPACE_PER_DATA * maxMemoryBytes + unreadLimit(maxMemoryBytes)
  return Math.floor(Math.max(Math.min(wanted, machineBytes * MOST_SHARE), presentBytes + LEAST_GROWTH_BYTES))
}

/** Bounds the memory of engines that run. */
export interface MemoryLimiter {
  /** Bounds the process of an engine whose data is bounded so. Never rejects: without the bound it runs as well. */
  limit(pid: number, maxMemoryBytes: number): Promise<void>
}

/** What a limiter needs. */
export interface MemoryLimiterOptions {
  readonly launcher: Pick<Launcher, 'spawn'>
  readonly logger: FleetLogger
}

/** A limiter that does what this system can: where it has no `prlimit`, which is told once, nothing. */
export async function createMemoryLimiter({ launcher, logger }: MemoryLimiterOptions): Promise<MemoryLimiter> {
  const tool = await findTool()
  if (tool === undefined) {
    const message =
      'the memory of engines cannot be bounded: install prlimit (util-linux), so that a script cannot take it all'
    logger.warn({}, message)
    return { limit: async () => {} }
  }
  const limit = async (pid: number, maxMemoryBytes: number): Promise<void> => {
    const machineBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
    const bytes = processLimit({ maxMemoryBytes, presentBytes: await presentBytes(pid), machineBytes })
    const setting = await launcher.spawn(tool, ['--pid', `${pid}`, `--data=${bytes}`])
    const { code, output } = await setting.exited
    if (code !== 0) throw new Error(`prlimit ended with ${code}: ${output}`)
  }
  return {
    limit: (pid, maxMemoryBytes) =>
      limit(pid, maxMemoryBytes).catch(async (error: unknown) => {
        // An engine that has ended meanwhile needs no bound.
        if (await isThere(pid)) logger.warn({ error, pid }, 'the memory of an engine cannot be bounded')
      }),
  }
}

/**
 * Words to put before a command so that its process is bounded from the start; none where no bound is wanted, or the
 * system has no tool for it. For engines that load data of somebody else, which may grow a hundredfold while it is read.
 */
export type MemoryLimitPrefix = (bytes: number | undefined) => readonly string[]

/** Looks once for the tool that sets the limit. */
export async function findMemoryLimitPrefix(): Promise<MemoryLimitPrefix> {
  const tool = await findTool()
  return (bytes) => (tool === undefined || bytes === undefined ? [] : [tool, `--data=${bytes}`, '--'])
}

/** The program that bounds others, if this system has it and lets us use it on programs of our own. */
async function findTool(): Promise<string | undefined> {
  try {
    const { stdout } = await run('/bin/sh', ['-c', 'command -v prlimit'])
    const tool = stdout.trim()
    await run(tool, ['--data=unlimited:unlimited', '/bin/sh', '-c', ':'])
    return tool
  } catch {
    return undefined
  }
}

/** What counts against the bound. */
async function presentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const [, kib] = /^VmData:\s*(\d+) kB/m.exec(status) ?? []
  if (kib === undefined) throw new Error('the system does not tell how much memory the engine has')
  return Number(kib) * KIB
}

function isThere(pid: number): Promise<boolean> {
  return readFile(`/proc/${pid}/status`, 'utf8').then(
    () => true,
    () => false,
  )
}
