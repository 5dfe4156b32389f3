import type { RunOptions } from '../engine-run.js'
import type { LaunchedProcess } from '../launcher/client.js'
import type { DataReport } from '../types.js'
import { judgeData, judgeRefusal, UnservableData } from './judge.js'
import { LogNoter, noteClosedLog } from './log-note.js'

type ExitReport = Awaited<LaunchedProcess['exited']>

/** Looks after the data of a primary through one life of its engine: judged before, noted meanwhile and at the end. */
export class PrimaryData {
  readonly #options: RunOptions
  readonly #noter: LogNoter | undefined
  #noting: Promise<void> | undefined
  #report: DataReport = { kind: 'whole' }

  constructor(options: RunOptions) {
    this.#options = options
    if (options.spec.persistence === 'append-only') this.#noter = new LogNoter(options.paths.dir)
  }

  /** Before the engine is started. Rejects with `UnservableData` when it must not be. */
  async judge(): Promise<void> {
    const { spec, paths } = this.#options
    if (spec.data !== 'must-exist') return
    try {
      this.#report = await judgeData(paths.dir, spec)
    } catch (error) {
      if (error instanceof UnservableData) this.#tell(error.report)
      throw error
    }
    if (this.#report.kind !== 'whole') this.#tell(this.#report)
  }

  /** The engine has read its data. */
  onAnswer(): void {
    if (this.#report.kind === 'whole') this.#tell(this.#report)
    this.onLook()
  }

  /** Every few seconds while the engine runs. */
  onLook(): void {
    if (!this.#noter || this.#noting) return
    const { context, spec } = this.#options
    this.#noting = this.#noter
      .look(context.clock.now())
      .catch((error: unknown) => {
        context.logger.warn({ error, databaseId: spec.databaseId }, 'the size of a log cannot be noted')
      })
      .finally(() => {
        this.#noting = undefined
      })
  }

  /**
   * The engine has ended. Notes the log that it has closed; or, when it has refused its data, finds out why.
   * Rejects with `UnservableData` when it will refuse it again.
   */
  async afterEnd({ code, output }: ExitReport, hasAnswered: boolean, stopping: string): Promise<void> {
    await this.#noting
    const { context, paths, spec } = this.#options
    if (hasAnswered && code === 0 && this.#noter) {
      await noteClosedLog(paths.dir, context.clock.now()).catch((error: unknown) => {
        context.logger.warn({ error, databaseId: spec.databaseId }, 'the size of a log cannot be noted')
      })
    }
    if (!hasAnswered && stopping === 'no') await this.#judgeRefusal(output)
  }

  async #judgeRefusal(said: string): Promise<void> {
    const { context, paths, spec } = this.#options
    const { quarantineDir } = context.layout
    const place = { quarantineDir, databaseId: spec.databaseId, memberDir: paths.dir, atMs: context.clock.now() }
    const refusal = await judgeRefusal(said, place)
    if (!refusal) return
    if (refusal.kind === 'unreadable') {
      this.#tell(refusal.report)
      throw new UnservableData(refusal.report)
    }
    const { report, cutBytes, keptIn } = refusal
    const facts = { databaseId: spec.databaseId, cutBytes, quarantine: keptIn }
    context.logger.warn(facts, 'the log of a database ended in the middle of a command; its end was cut off and kept')
    if (report.kind !== 'whole') this.#tell(report)
  }

  #tell(report: DataReport): void {
    this.#options.context.onData(this.#options.spec.databaseId, report)
  }
}
