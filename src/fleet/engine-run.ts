/**
 * One life of one engine process: files, process, first answer, end. It can be stopped at any moment of this, also
 * before there is a process, and it ends exactly once.
 */
import { type Clock, unreachable } from '../base/index.js'
import type { EnginePaths, InternalSecrets } from './engine-config.js'
import { failureOf, writeEngineFiles } from './engine-files.js'
import type { ExitReport, LaunchedProcess, Launcher } from './launcher/client.js'
import type { Layout } from './layout.js'
import type { Failure } from './member.js'
import { untilAnswering } from './ping.js'
import type { EngineInfo, EngineSpec, FleetLogger, MemberSpec } from './types.js'

/** What every part of a running fleet shares. */
export interface FleetContext {
  readonly engine: EngineInfo
  readonly launcher: Launcher
  readonly layout: Layout
  readonly clock: Clock
  readonly logger: FleetLogger
  /** How long an engine that is asked to end may take, as it is now. */
  readonly stopGraceMs: () => number
  readonly readyDeadlineMs: number
  /** Words before an engine's command that make it end when the launcher dies; empty where the system cannot. */
  readonly commandPrefix: readonly string[]
  /** A number that no process of this fleet has had. */
  readonly nextGeneration: () => number
}

/** What one run needs. */
export interface RunOptions {
  readonly context: FleetContext
  readonly spec: EngineSpec
  readonly member: MemberSpec
  readonly paths: EnginePaths
  readonly secrets: InternalSecrets
  /** Called once, when the engine answers. */
  readonly onAnswer: (pid: number) => void
}

/** How a run ended. `detail` is for the log only: it may name paths. */
export interface RunEnd {
  readonly failure: Failure
  readonly detail: string
}

/** A run under way. */
export interface EngineRun {
  /** Resolves once when nothing of this run is left; never rejects. */
  readonly ended: Promise<RunEnd>
  /** `save`: let the engine end cleanly within the grace; `discard`: end it at once. May be repeated. */
  stop(how: 'save' | 'discard'): void
  /** Ends the process as a crash would. */
  breakOff(): void
}

/** The engine's own words about its end are in its last lines. */
const DETAIL_LIMIT_CHARACTERS = 1_000

function howItEnded({ code, signal }: ExitReport): string {
  if (signal !== null) return `was ended by ${signal}`
  return code === null ? 'was lost with its launcher' : `exited with code ${code}`
}

function describeExit(report: ExitReport, hasAnswered: boolean): RunEnd {
  const detail = report.output.slice(-DETAIL_LIMIT_CHARACTERS)
  const when = hasAnswered ? '' : ' while starting'
  return { failure: failureOf(detail, `it ${howItEnded(report)}${when}`), detail }
}

function describeError(error: unknown): RunEnd {
  const detail = error instanceof Error ? error.message : String(error)
  return { failure: failureOf(detail, 'it could not be started'), detail }
}

class Run implements EngineRun {
  readonly ended: Promise<RunEnd>
  readonly #options: RunOptions
  readonly #quit = new AbortController()
  #process: LaunchedProcess | undefined
  #stopping: 'no' | 'save' | 'discard' = 'no'
  #hasAnswered = false
  #problem: RunEnd | undefined

  constructor(options: RunOptions) {
    this.#options = options
    this.ended = this.#live().catch(describeError)
  }

  stop(how: 'save' | 'discard'): void {
    if (this.#stopping === 'discard' || this.#stopping === how) return
    this.#stopping = how
    this.#quit.abort(new Error('the engine is to stop'))
    this.#endProcess()
  }

  breakOff(): void {
    this.#process?.signal('SIGKILL')
  }

  async #live(): Promise<RunEnd> {
    const { context, spec, member, paths, secrets } = this.#options
    await writeEngineFiles(spec, member, paths, secrets, context.engine.commands)
    this.#quit.signal.throwIfAborted()
    const [command = '', ...args] = [...context.commandPrefix, context.engine.binary, paths.configFile]
    const process = await context.launcher.spawn(command, args)
    this.#process = process
    this.#endProcess()
    void this.#awaitAnswer(process.pid)
    const report = await process.exited
    this.#quit.abort(new Error('the engine has ended'))
    return this.#problem ?? describeExit(report, this.#hasAnswered)
  }

  async #awaitAnswer(pid: number): Promise<void> {
    const { context, paths, secrets, onAnswer } = this.#options
    try {
      await untilAnswering({ socketPath: paths.socket, password: secrets.control, ...context }, this.#quit.signal)
      this.#hasAnswered = true
      onAnswer(pid)
    } catch (error) {
      if (this.#quit.signal.aborted) return
      const detail = error instanceof Error ? error.message : String(error)
      this.#problem = { failure: { kind: 'engine', reason: detail }, detail }
      this.stop('discard')
    }
  }

  /** Carries out the stop, if one was asked for and there is a process yet. */
  #endProcess(): void {
    const process = this.#process
    if (!process) return
    switch (this.#stopping) {
      case 'no':
        break
      case 'save':
        this.#endCleanly(process)
        break
      case 'discard':
        process.signal('SIGKILL')
        break
      default:
        unreachable(this.#stopping)
    }
  }

  /** A clean end that takes too long is cut short. */
  #endCleanly(process: LaunchedProcess): void {
    const { clock, stopGraceMs } = this.#options.context
    process.signal('SIGTERM')
    const killer = clock.after(stopGraceMs(), () => process.signal('SIGKILL'))
    void process.exited.then(() => killer.cancel())
  }
}

/** Begins a run; see the top of this file. */
export function beginRun(options: RunOptions): EngineRun {
  return new Run(options)
}
