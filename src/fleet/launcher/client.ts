/**
 * The fleet's end of the launcher: one launcher process at a time, started anew when it dies.
 *
 * When a launcher dies, the ends of its engines cannot be reported any more. So before anybody hears that those
 * engines have ended, `endLeftovers` makes it true; and only then is the next launcher started. Whoever waits for
 * `exited` may therefore rely on it: after it, nothing runs on that engine's files.
 */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Clock, pause, type Timer } from '../../base/index.js'
import type { FleetLogger } from '../types.js'
import type { LauncherReport, LauncherRequest } from './protocol.js'

/** How a process ended. */
export interface ExitReport {
  readonly code: number | null
  readonly signal: string | null
  /** The last lines that it wrote. */
  readonly output: string
}

/** A process that the launcher has started. */
export interface LaunchedProcess {
  readonly pid: number
  /** Resolves once, when the process has ended and been waited for; never rejects. */
  readonly exited: Promise<ExitReport>
  /** Sends a signal; does nothing after the end. */
  signal(signal: 'SIGTERM' | 'SIGKILL'): void
}

/** Starts processes without holding up this one. */
export interface Launcher {
  /** Starts the launcher process; resolves when it takes requests. */
  start(): Promise<void>
  /** Starts a process. Rejects when it cannot be started, or when the launcher ends first. */
  spawn(command: string, args: readonly string[]): Promise<LaunchedProcess>
  /** Lets the launcher go; it ends what it started. Resolves when it has exited. */
  stop(): Promise<void>
  /** The id of the launcher's process, while it runs. */
  readonly pid: number | undefined
}

/** What a launcher needs. */
export interface LauncherOptions {
  /** Of the server that it works for; shown in the list of processes. */
  readonly dataDir: string
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Makes sure that no engine runs which this launcher does not know; called after a launcher has died. */
  readonly endLeftovers: () => Promise<void>
}

interface Pending {
  readonly resolve: (process: LaunchedProcess) => void
  readonly reject: (error: Error) => void
}

const RETRY_MS = 1_000
const PING_EVERY_MS = 2_000
/** A launcher that leaves so many questions in a row unanswered hangs: it has next to nothing to do. */
const MOST_UNANSWERED = 5
/** The launcher kills engines that do not end before it ends itself; one that takes longer hangs. */
const LAUNCHER_GRACE_MS = 15_000
const LOST: ExitReport = { code: null, signal: null, output: 'its launcher ended' }

/** The launcher's program: bundled beside this file, or the source through tsx when this is a source itself. */
function forkLauncher(dataDir: string): ChildProcess {
  const isSource = import.meta.url.endsWith('.ts')
  const file = fileURLToPath(new URL(isSource ? 'launcher.ts' : 'launcher.js', import.meta.url))
  const loader = isSource ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : []
  return fork(file, [dataDir], {
    execArgv: loader,
    env: {},
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
}

class LauncherClient implements Launcher {
  readonly #options: LauncherOptions
  readonly #pending = new Map<number, Pending>()
  readonly #running = new Map<number, (report: ExitReport) => void>()
  #child: ChildProcess | undefined
  #launchedAtMs = 0
  #ready: Promise<void> = Promise.reject(new Error('the launcher was not started'))
  #recovered: Promise<void> = Promise.resolve()
  #isStopping = false
  #lastId = 0
  #unanswered = 0

  constructor(options: LauncherOptions) {
    this.#options = options
    this.#ready.catch(() => {}) // Those who wait for it are told; nobody has to be waiting.
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  start(): Promise<void> {
    this.#ready = this.#launch()
    return this.#ready
  }

  async spawn(command: string, args: readonly string[]): Promise<LaunchedProcess> {
    await this.#ready
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#send({ kind: 'start', id, command, args })
    })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const child = this.#child
    if (child) {
      const exited = new Promise((resolve) => child.once('exit', resolve))
      const killer = this.#options.clock.after(LAUNCHER_GRACE_MS, () => child.kill('SIGKILL'))
      if (child.connected) child.disconnect()
      await exited
      killer.cancel()
    }
    await this.#recovered
  }

  #launch(): Promise<void> {
    const child = forkLauncher(this.#options.dataDir)
    this.#child = child
    this.#launchedAtMs = this.#options.clock.now()
    this.#unanswered = 0
    let watch: Timer | undefined
    child.once('exit', (code, signal) => {
      watch?.cancel()
      this.#recovered = this.#recover(code, signal)
    })
    return new Promise((resolve, reject) => {
      child.on('message', (report: LauncherReport) => {
        this.#unanswered = 0
        if (report.kind === 'ready') {
          watch = this.#watch(child)
          resolve()
        } else if (report.kind !== 'pong') this.#hear(report)
      })
      child.on('error', (error) => {
        // What could not even be started never exits.
        if (child.pid === undefined) this.#child = undefined
        reject(error)
      })
      child.once('exit', () => reject(new Error('the launcher ended before it was ready')))
    })
  }

  /**
   * Ends a launcher that hangs, as one that was stopped by a signal: it neither starts engines nor tells of their ends,
   * and its exit settles everything. Questions are counted, so that time in which this process did not run counts for none.
   */
  #watch(child: ChildProcess): Timer {
    let timer: Timer
    const look = (): void => {
      if (this.#unanswered >= MOST_UNANSWERED) {
        this.#options.logger.error({ pid: child.pid }, 'the launcher does not answer any more; it is ended')
        child.kill('SIGKILL')
        return
      }
      this.#unanswered++
      this.#send({ kind: 'ping' })
      timer = this.#options.clock.after(PING_EVERY_MS, look)
    }
    timer = this.#options.clock.after(PING_EVERY_MS, look)
    return { cancel: () => timer.cancel() }
  }

  #send(request: LauncherRequest): void {
    // A failure to send means that the launcher has gone; its exit settles everything.
    if (this.#child?.connected) this.#child.send(request, () => {})
  }

  #hear(report: Exclude<LauncherReport, { kind: 'ready' | 'pong' }>): void {
    const pending = this.#pending.get(report.id)
    this.#pending.delete(report.id)
    if (report.kind === 'started') pending?.resolve(this.#launched(report.id, report.pid))
    else if (report.kind === 'failed') pending?.reject(new Error(report.reason))
    else this.#ended(report.id, report)
  }

  #launched(id: number, pid: number): LaunchedProcess {
    const exited = new Promise<ExitReport>((resolve) => this.#running.set(id, resolve))
    return { pid, exited, signal: (signal) => this.#send({ kind: 'signal', id, signal }) }
  }

  #ended(id: number, report: ExitReport): void {
    this.#running.get(id)?.(report)
    this.#running.delete(id)
  }

  /** After the launcher's exit: make sure that its engines have ended, then say so, and start the next launcher. */
  async #recover(code: number | null, signal: string | null): Promise<void> {
    this.#child = undefined
    if (!this.#isStopping) this.#options.logger.warn({ code, signal }, 'the launcher ended; its engines are restarted')
    const cleared = this.#endLeftovers()
    this.#ready = cleared.then(() => this.#relaunch())
    this.#ready.catch(() => {})
    await cleared
    for (const { reject } of this.#pending.values()) reject(new Error(LOST.output))
    this.#pending.clear()
    for (const id of [...this.#running.keys()]) this.#ended(id, LOST)
  }

  /** A launcher that lived only a moment is likely to do so again, so the next one waits. */
  async #relaunch(): Promise<void> {
    const { clock } = this.#options
    if (!this.#isStopping && clock.now() - this.#launchedAtMs < RETRY_MS) await pause(this.#options.clock, RETRY_MS)
    if (this.#isStopping) throw new Error('the launcher was stopped')
    await this.#launch()
  }

  async #endLeftovers(): Promise<void> {
    for (;;) {
      try {
        return await this.#options.endLeftovers()
      } catch (error) {
        this.#options.logger.error({ error }, 'engines of a lost launcher cannot be ended; trying again')
        await pause(this.#options.clock, RETRY_MS)
      }
    }
  }
}

/** A launcher that is not started yet. */
export function createLauncher(options: LauncherOptions): Launcher {
  return new LauncherClient(options)
}

const run = promisify(execFile)
const PREFIX = ['--pdeathsig', 'TERM', '--'] as const

/**
 * Words to put before a command so that the kernel ends it cleanly when the process that started it dies in whatever
 * way. Empty where the system has no such tool; then leftovers are found by `endEngines` at the next start.
 */
export async function findDeathSignalPrefix(): Promise<readonly string[]> {
  try {
    const { stdout } = await run('/bin/sh', ['-c', 'command -v setpriv'])
    const tool = stdout.trim()
    await run(tool, [...PREFIX, '/bin/sh', '-c', ':'])
    return [tool, ...PREFIX]
  } catch {
    return []
  }
}
