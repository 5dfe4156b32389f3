/**
 * One life of one engine process: files, start, first answer, end. It can be stopped at any point, even before there is
 * a process, and it ends exactly once.
 */
import { type Clock, unreachable } from '../base/index.js'
import type { DatabasesMeter, Problems } from '../telemetry/index.js'
import { waitUntilReady } from './ask.js'
import { UnservableData } from './data/damage.js'
import { PrimaryData } from './data/primary-data.js'
import type { EnginePaths, InternalSecrets } from './engine-config.js'
import { failureOf, writeEngineFiles } from './engine-files.js'
import { HealthCheck, type OnPong } from './health-check.js'
import { deathSignalPrefix, type ExitReport, type LaunchedProcess, type Launcher } from './launcher/client.js'
import type { Layout } from './layout.js'
import type { Failure } from './member.js'
import { type MemoryLimiter, memoryLimitPrefix } from './memory-limit.js'
import type { DataReport, EngineInfo, EngineSpec, FleetLogger, MemberSpec } from './types.js'

/** Shared by all components of a running fleet. */
export interface FleetContext {
  readonly engine: EngineInfo
  readonly launcher: Launcher
  readonly layout: Layout
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Time for an engine to end cleanly, milliseconds; shorter while the server stops. */
  readonly stopGraceMs: () => number
  readonly readyDeadlineMs: number
  /** See `Fleet.hasSpace`. Without space, a log may lack writes that its engine has acknowledged. */
  readonly hasSpace: () => boolean
  /** Called with the state of the data of a database. */
  readonly onData: (databaseId: string, report: DataReport) => void
  readonly problems: Pick<Problems, 'report' | 'resolve'> | undefined
  readonly meter: Pick<DatabasesMeter, 'engineFailures'> | undefined
  /** Limits the memory of running engines. */
  readonly memoryLimiter: MemoryLimiter
  /** Returns a number that no process of this fleet has had. */
  readonly nextGeneration: () => number
}

/** Parameters of one run. */
export interface RunOptions {
  readonly context: FleetContext
  readonly spec: EngineSpec
  readonly member: MemberSpec
  readonly paths: EnginePaths
  readonly secrets: InternalSecrets
  /** Called once, when the engine answers. */
  readonly onAnswer: (pid: number) => void
}

/** How a run ended. `detail` may contain paths: for the log only. */
export interface RunEnd {
  readonly failure: Failure
  readonly detail: string
}

/** A run in progress. */
export interface EngineRun {
  /** Resolves when nothing of this run is left; never rejects. */
  readonly ended: Promise<RunEnd>
  /** `save`: end cleanly within the grace; `discard`: kill. Idempotent. */
  stop(how: 'save' | 'discard'): void
  /** Kills the process as a crash would. */
  kill(): void
}

/** Characters of the output to keep: the reason of an end is in its last lines. */
const DETAIL_LIMIT_CHARACTERS = 1_000

const LOST_WITHOUT_LOG = 'The database has no log, so the writes since its last snapshot are lost'
const LOST_WITHOUT_SPACE = 'The disk was full, so acknowledged writes that its log lacked are lost'

function exitText({ code, signal }: ExitReport): string {
  if (signal !== null) return `was ended by ${signal}`
  return code === null ? 'was lost with its launcher' : `exited with code ${code}`
}

function describeExit(report: ExitReport, hasAnswered: boolean): RunEnd {
  const detail = report.output.slice(-DETAIL_LIMIT_CHARACTERS)
  const when = hasAnswered ? '' : ' while starting'
  return { failure: failureOf(detail, `it ${exitText(report)}${when}`), detail }
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

/** The subject of the problem that an engine of a member has hung. */
export const hungSubject = (databaseId: string, region: string): string => `${databaseId}/${region}`

class Run implements EngineRun {
  readonly ended: Promise<RunEnd>
  readonly #options: RunOptions
  readonly #abort = new AbortController()
  /** Only for a primary; a replica copies its data. */
  readonly #data: PrimaryData | undefined
  #healthCheck: HealthCheck | undefined
  #process: LaunchedProcess | undefined
  #stopping: 'no' | 'save' | 'discard' = 'no'
  #hasAnswered = false
  #problem: RunEnd | undefined

  constructor(options: RunOptions) {
    this.#options = options
    if (options.member.role === 'primary') this.#data = primaryDataOf(options)
    this.ended = this.#run().catch(describeError)
  }

  stop(how: 'save' | 'discard'): void {
    if (this.#stopping === 'discard' || this.#stopping === how) return
    this.#stopping = how
    this.#abort.abort(new Error('the engine was asked to stop'))
    this.#endProcess()
  }

  kill(): void {
    this.#process?.signal('SIGKILL')
  }

  async #run(): Promise<RunEnd> {
    const { context, spec, member, paths, secrets } = this.#options
    await this.#data?.inspect()
    await writeEngineFiles(spec, member, paths, secrets, context.engine)
    this.#abort.signal.throwIfAborted()
    const [command = '', ...args] = await this.#command()
    const process = await context.launcher.spawn(command, args)
    this.#process = process
    this.#endProcess()
    void this.#awaitAnswer(process.pid)
    const report = await process.exited
    this.#abort.abort(new Error('the engine has ended'))
    this.#healthCheck?.stop()
    await this.#data?.afterEnd(report, this.#hasAnswered, this.#stopping)
    if (this.#stopping === 'save' && report.code === 0) context.problems?.resolve('engine_hung', this.#subject)
    return this.#problem ?? describeExit(report, this.#hasAnswered)
  }

  /** Finds the tools while the launcher starts, so that the first engine waits for both at once. */
  async #command(): Promise<readonly string[]> {
    const { context, spec, paths } = this.#options
    const [atDeath, memory] = await Promise.all([
      deathSignalPrefix(),
      memoryLimitPrefix(spec.processMemoryBytes),
      context.launcher.start(),
    ])
    return [...atDeath, ...memory, context.engine.binary, paths.configFile]
  }

  /** Never rejects. */
  async #awaitAnswer(pid: number): Promise<void> {
    const { context, paths, secrets, onAnswer } = this.#options
    try {
      await waitUntilReady({ socketPath: paths.socket, password: secrets.control, ...context }, this.#abort.signal)
      this.#hasAnswered = true
      this.#data?.onAnswer()
      this.#startHealthCheck(pid)
      onAnswer(pid)
    } catch (error) {
      if (this.#abort.signal.aborted) return
      const detail = error instanceof Error ? error.message : String(error)
      this.#problem = { failure: { kind: 'engine', reason: detail }, detail }
      this.stop('discard')
    }
  }

  get #subject(): string {
    return hungSubject(this.#options.spec.databaseId, this.#options.member.region)
  }

  #startHealthCheck(pid: number): void {
    const { context, paths, secrets } = this.#options
    const onHung = (how: string): void => this.#onHung(pid, how)
    const beforePing = async (): Promise<OnPong> => this.#data?.measure()
    const address = { socketPath: paths.socket, secrets }
    this.#healthCheck = new HealthCheck({ pid, address, clock: context.clock, onHung, beforePing })
  }

  /** Kills an engine that hangs: it serves nobody and would not end by itself. */
  #onHung(pid: number, how: string): void {
    const { context, spec } = this.#options
    if (this.#stopping !== 'no') return
    const reason = `it hung: ${how}`
    this.#problem = { failure: { kind: 'engine', reason }, detail: reason }
    const lostOfLog = context.hasSpace() ? 'No acknowledged write is lost' : LOST_WITHOUT_SPACE
    const lost = spec.persistence === 'append-only' ? lostOfLog : LOST_WITHOUT_LOG
    context.problems?.report({
      kind: 'engine_hung',
      subject: this.#subject,
      severity: 'warning',
      title: `The engine of a database hung (${how}); Homeport killed it and restarts it.`,
      advice: `${lost}. If this happens again, look for process ${pid} in the system's log.`,
    })
    this.kill()
  }

  /** Signals the process if a stop was requested and there is a process. */
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

  /** Asks the process to end, and kills it after the grace. */
  #endCleanly(process: LaunchedProcess): void {
    const { spec, member, context } = this.#options
    const { clock, logger, stopGraceMs } = context
    process.signal('SIGTERM')
    const killer = clock.after(stopGraceMs(), () => {
      logger.warn('engine_killed', { databaseId: spec.databaseId, region: member.region })
      process.signal('SIGKILL')
    })
    void process.exited.then(() => killer.cancel())
  }
}

/** Starts a run; see the top of this file. */
export function startRun(options: RunOptions): EngineRun {
  return new Run(options)
}
