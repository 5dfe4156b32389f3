/**
 * The fleet's side of the launcher: one launcher process at a time, started with the first engine, and restarted when it
 * dies. A server without databases has no launcher.
 *
 * When a launcher dies, it can no longer report the exits of its engines. So before their `exited` resolves,
 * `endLeftovers` ends them, and only then the next launcher starts. After `exited`, therefore, nothing runs on the
 * files of that engine.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Clock, pause, type Timer } from '../../base/index.js'
import { usableProgram } from '../programs.js'
import type { FleetLogger } from '../types.js'
import type { LauncherReport, LauncherRequest } from './protocol.js'
import { programOfSource } from './source-program.js'

/** How a process ended. */
export interface ExitReport {
  readonly code: number | null
  readonly signal: string | null
  /** Its last output. */
  readonly output: string
}

/** A process that the launcher has started. */
export interface LaunchedProcess {
  readonly pid: number
  /** Resolves when the process has ended and was reaped; never rejects. */
  readonly exited: Promise<ExitReport>
  /** Sends a signal; does nothing after the end. */
  signal(signal: 'SIGTERM' | 'SIGKILL'): void
}

/** Starts processes without blocking this one. */
export interface Launcher {
  /** Starts the launcher process unless it runs; resolves when it accepts requests. */
  start(): Promise<void>
  /** Starts a process, and the launcher before it. Rejects when it cannot be started, or when the launcher ends first. */
  spawn(command: string, args: readonly string[]): Promise<LaunchedProcess>
  /** Disconnects the launcher, which ends its processes. Resolves when it has exited. */
  stop(): Promise<void>
  /** Process id of the launcher, while it runs. */
  readonly pid: number | undefined
}

/** Collaborators and settings of a launcher. */
export interface LauncherOptions {
  /** Data directory of the server; shown in the process list. */
  readonly dataDir: string
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Ends all engines of a dead launcher; called after it has died. */
  readonly endLeftovers: () => Promise<void>
}

interface Pending {
  readonly resolve: (process: LaunchedProcess) => void
  readonly reject: (error: Error) => void
}

const RETRY_MS = 1_000
const PING_EVERY_MS = 2_000
/** Unanswered pings in a row after which a launcher counts as hung. A launcher has little to do and answers quickly. */
const MAX_UNANSWERED = 5
/** Time for the launcher to start. Where the system refuses threads, Node may hang before it runs any program. */
const START_LIMIT_MS = 60_000
/** Time for the launcher to end; it kills slow engines within less. */
const LAUNCHER_GRACE_MS = 15_000
const STOPPED = 'the launcher was stopped'
const LOST: ExitReport = { code: null, signal: null, output: 'its launcher ended' }

/**
 * V8 flags of the launcher. It waits for the kernel nearly all the time, so optimized code and large heaps gain nothing
 * and would keep about 7 MB after it has started a thousand engines.
 */
const V8_FLAGS = ['--no-opt', '--optimize-for-size', '--semi-space-growth-factor=1']

/** The launcher's program: bundled beside this file, or bundled from its source when this is a source itself. */
function launcherFile(): string {
  if (!import.meta.url.endsWith('.ts')) return fileURLToPath(new URL('launcher.js', import.meta.url))
  return programOfSource(fileURLToPath(new URL('launcher.ts', import.meta.url)))
}

function forkLauncher(dataDir: string): ChildProcess {
  return fork(launcherFile(), [dataDir], {
    execArgv: V8_FLAGS,
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
  /**
   * Resolves when the launcher accepts requests. `undefined` before the first start, and when its process could not be
   * started.
   */
  #ready: Promise<void> | undefined
  #recovered: Promise<void> = Promise.resolve()
  #isStopping = false
  #lastId = 0
  #unanswered = 0

  constructor(options: LauncherOptions) {
    this.#options = options
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  async start(): Promise<void> {
    if (this.#isStopping) throw new Error(STOPPED)
    this.#ready ??= this.#launch()
    await this.#ready
  }

  async spawn(command: string, args: readonly string[]): Promise<LaunchedProcess> {
    await this.start()
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
      // Without engines there is nothing to end in order, and a launcher that is not ready yet may hang.
      if (this.#pending.size + this.#running.size === 0) child.kill('SIGKILL')
      else if (child.connected) child.disconnect()
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
    let watch = this.#options.clock.after(START_LIMIT_MS, () => this.#endHung(child))
    child.once('exit', (code, signal) => {
      watch.cancel()
      this.#recovered = this.#recover(code, signal)
    })
    return new Promise((resolve, reject) => {
      child.on('message', (report: LauncherReport) => {
        this.#unanswered = 0
        if (report.kind === 'ready') {
          watch.cancel()
          watch = this.#startPinging(child)
          resolve()
        } else if (report.kind !== 'pong') this.#handleReport(report)
      })
      child.on('error', (error) => {
        reject(error)
        if (child.pid !== undefined) return
        // A process that failed to start never exits. The next engine tries again.
        watch.cancel()
        this.#child = undefined
        this.#ready = undefined
      })
      child.once('exit', () => reject(new Error('the launcher ended before it was ready')))
    })
  }

  /**
   * Kills a launcher that hangs, for example one stopped by a signal: it neither starts engines nor reports exits. Its
   * exit triggers the recovery. Pings are counted, so time in which this process did not run does not count.
   */
  #startPinging(child: ChildProcess): Timer {
    let timer: Timer
    const check = (): void => {
      if (this.#unanswered >= MAX_UNANSWERED) return void this.#endHung(child)
      this.#unanswered++
      this.#send({ kind: 'ping' })
      timer = this.#options.clock.after(PING_EVERY_MS, check)
    }
    timer = this.#options.clock.after(PING_EVERY_MS, check)
    return { cancel: () => timer.cancel() }
  }

  #endHung(child: ChildProcess): void {
    this.#options.logger.error('launcher_hung', { pid: child.pid })
    child.kill('SIGKILL')
  }

  #send(request: LauncherRequest): void {
    // A failed send means that the launcher is gone; its exit triggers the recovery.
    if (this.#child?.connected) this.#child.send(request, () => {})
  }

  #handleReport(report: Exclude<LauncherReport, { kind: 'ready' | 'pong' }>): void {
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

  /** After the exit of a launcher: ends its engines, reports their ends, and starts the next launcher. */
  async #recover(code: number | null, signal: string | null): Promise<void> {
    this.#child = undefined
    if (!this.#isStopping) this.#options.logger.warn('launcher_ended', { code, signal })
    const cleared = this.#endLeftovers()
    const ready = cleared.then(() => this.#relaunch())
    this.#ready = ready
    ready.catch(() => {
      // No process was started. The next engine tries again.
      if (this.#ready === ready) this.#ready = undefined
    })
    await cleared
    for (const { reject } of this.#pending.values()) reject(new Error(LOST.output))
    this.#pending.clear()
    for (const id of [...this.#running.keys()]) this.#ended(id, LOST)
  }

  /** A launcher that died quickly is likely to do so again, so the next one waits. */
  async #relaunch(): Promise<void> {
    const { clock } = this.#options
    if (!this.#isStopping && clock.now() - this.#launchedAtMs < RETRY_MS) await pause(this.#options.clock, RETRY_MS)
    if (this.#isStopping) throw new Error(STOPPED)
    await this.#launch()
  }

  async #endLeftovers(): Promise<void> {
    for (;;) {
      try {
        return await this.#options.endLeftovers()
      } catch (error) {
        this.#options.logger.error('launcher_leftovers_not_ended', { error })
        await pause(this.#options.clock, RETRY_MS)
      }
    }
  }
}

/** Creates a launcher; it does not run before it is needed. */
export function createLauncher(options: LauncherOptions): Launcher {
  return new LauncherClient(options)
}

const PREFIX = ['--pdeathsig', 'TERM', '--'] as const

/**
 * Command prefix that makes the kernel end a process cleanly when its parent dies in any way. Empty where the system
 * has no `setpriv`; then `endEngines` finds leftovers at the next start.
 */
export async function deathSignalPrefix(): Promise<readonly string[]> {
  const tool = await usableProgram('setpriv', [...PREFIX, '/bin/sh', '-c', ':'])
  return tool === undefined ? [] : [tool, ...PREFIX]
}
