/**
 * One life of one engine process: files, process, first answer, end. It can be stopped at any moment of this, also
 * before there is a process, and it ends exactly once.
 */
import { type Clock, unreachable } from '../base/index.js'
import type { Problems } from '../telemetry/index.js'
import { waitUntilReady } from './ask.js'
import { UnservableData } from './data/inspect.js'
import { PrimaryData } from './data/primary-data.js'
import type { EnginePaths, InternalSecrets } from './engine-config.js'
import { failureOf, writeEngineFiles } from './engine-files.js'
import { HealthCheck } from './health-check.js'
import type { ExitReport, LaunchedProcess, Launcher } from './launcher/client.js'
import type { Layout } from './layout.js'
import type { Failure } from './member.js'
import type { MemoryLimiter, MemoryLimitPrefix } from './memory-limit.js'
import type { DataReport, EngineInfo, EngineSpec, FleetLogger, MemberSpec } from './types.js'

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
  /** Told what was found of the data of a database. */
  readonly onData: (databaseId: string, report: DataReport) => void
  readonly problems: Pick<Problems, 'report' | 'resolve'> | undefined
  /** Words before an engine's command that bound the memory of its process; see `findMemoryLimitPrefix`. */
  readonly memoryLimitPrefix: MemoryLimitPrefix
  /** Bounds the memory of engines that run. */
  readonly memoryLimiter: MemoryLimiter
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
  kill(): void
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
  if (error instanceof UnservableData) {
    const { kind, what } = error.report
    return { failure: { kind: `data-${kind}`, reason: what }, detail: what }
  }
  const detail = error instanceof Error ? error.message : String(error)
  return { failure: failureOf(detail, 'it could not be started'), detail }
}

function primaryDataOf({ context, spec, paths }: RunOptions): PrimaryData {
  const { clock, logger, layout, onData } = context
  const onReport = (report: DataReport): void => onData(spec.databaseId, report)
  return new PrimaryData({ spec, memberDir: paths.dir, quarantineDir: layout.quarantineDir, clock, logger, onReport })
}

class Run implements EngineRun {
  readonly ended: Promise<RunEnd>
  readonly #options: RunOptions
  readonly #quit = new AbortController()
  /** Of a primary: a replica's data is that of its primary. */
  readonly #data: PrimaryData | undefined
  #watch: HealthCheck | undefined
  #process: LaunchedProcess | undefined
  #stopping: 'no' | 'save' | 'discard' = 'no'
  #hasAnswered = false
  #problem: RunEnd | undefined

  constructor(options: RunOptions) {
    this.#options = options
    if (options.member.role === 'primary') this.#data = primaryDataOf(options)
    this.ended = this.#live().catch(describeError)
  }

  stop(how: 'save' | 'discard'): void {
    if (this.#stopping === 'discard' || this.#stopping === how) return
    this.#stopping = how
    this.#quit.abort(new Error('the engine is to stop'))
    this.#endProcess()
  }

  kill(): void {
    this.#process?.signal('SIGKILL')
  }

  async #live(): Promise<RunEnd> {
    const { context, spec, member, paths, secrets } = this.#options
    await this.#data?.judge()
    await writeEngineFiles(spec, member, paths, secrets, context.engine)
    this.#quit.signal.throwIfAborted()
    const prefix = [...context.commandPrefix, ...context.memoryLimitPrefix(spec.processMemoryBytes)]
    const [command = '', ...args] = [...prefix, context.engine.binary, paths.configFile]
    const process = await context.launcher.spawn(command, args)
    this.#process = process
    this.#endProcess()
    void this.#awaitAnswer(process.pid)
    const report = await process.exited
    this.#quit.abort(new Error('the engine has ended'))
    this.#watch?.stop()
    await this.#data?.afterEnd(report, this.#hasAnswered, this.#stopping)
    if (this.#stopping === 'save' && report.code === 0) context.problems?.resolve('engine_hung', this.#subject)
    return this.#problem ?? describeExit(report, this.#hasAnswered)
  }

  /** Never rejects. */
  async #awaitAnswer(pid: number): Promise<void> {
    const { context, paths, secrets, onAnswer } = this.#options
    try {
      await waitUntilReady({ socketPath: paths.socket, password: secrets.control, ...context }, this.#quit.signal)
      this.#hasAnswered = true
      this.#data?.onAnswer()
      this.#beginWatch(pid)
      onAnswer(pid)
    } catch (error) {
      if (this.#quit.signal.aborted) return
      const detail = error instanceof Error ? error.message : String(error)
      this.#problem = { failure: { kind: 'engine', reason: detail }, detail }
      this.stop('discard')
    }
  }

  get #subject(): string {
    return `${this.#options.spec.databaseId}/${this.#options.member.region}`
  }

  #beginWatch(pid: number): void {
    const { context, paths, secrets } = this.#options
    const onHung = (how: string): void => this.#onHung(pid, how)
    const onLook = (): void => this.#data?.onLook()
    const address = { socketPath: paths.socket, secrets }
    this.#watch = new HealthCheck({ pid, address, clock: context.clock, onHung, onLook })
  }

  /** An engine that hangs serves nobody, and would not end by itself either. */
  #onHung(pid: number, how: string): void {
    const { context } = this.#options
    if (this.#stopping !== 'no') return
    const reason = `it hung: ${how}`
    this.#problem = { failure: { kind: 'engine', reason }, detail: reason }
    context.problems?.report({
      kind: 'engine_hung',
      subject: this.#subject,
      severity: 'warning',
      title: `The engine of a database hung (${how}); Homeport ended it and starts it again.`,
      advice: `Nothing that it had answered is lost. If this comes again, look at process ${pid} in the system's log.`,
    })
    this.kill()
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
