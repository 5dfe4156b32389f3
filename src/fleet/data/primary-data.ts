import type { Clock } from '../../base/index.js'
import type { ExitReport } from '../launcher/client.js'
import type { DataReport, EngineSpec, FleetLogger } from '../types.js'
import { diagnoseRefusal, inspectData, UnservableData } from './inspect.js'
import { LogNoter, noteClosedLog } from './log-files.js'

/** What the data of one primary is watched with. */
export interface PrimaryDataOptions {
  readonly spec: EngineSpec
  /** The member's directory. */
  readonly memberDir: string
  /** `<dataDir>/quarantine`. */
  readonly quarantineDir: string
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Called with the state of the data, before its engine serves. */
  readonly onReport: (report: DataReport) => void
}

/** Looks after the data of a primary through one life of its engine: judged before, noted meanwhile and at the end. */
export class PrimaryData {
  readonly #options: PrimaryDataOptions
  readonly #noter: LogNoter | undefined
  #noting: Promise<void> | undefined
  #report: DataReport = { kind: 'whole' }

  constructor(options: PrimaryDataOptions) {
    this.#options = options
    if (options.spec.persistence === 'append-only') this.#noter = new LogNoter(options.memberDir)
  }

  /** Before the engine is started. Rejects with `UnservableData` when it must not be. */
  async judge(): Promise<void> {
    const { spec, memberDir } = this.#options
    if (spec.data !== 'must-exist') return
    try {
      this.#report = await inspectData(memberDir, spec)
    } catch (error) {
      if (error instanceof UnservableData) this.#options.onReport(error.report)
      throw error
    }
    if (this.#report.kind !== 'whole') this.#options.onReport(this.#report)
  }

  /** The engine has read its data. */
  onAnswer(): void {
    if (this.#report.kind === 'whole') this.#options.onReport(this.#report)
    this.onLook()
  }

  /** Every few seconds while the engine runs. */
  onLook(): void {
    if (!this.#noter || this.#noting) return
    const { clock, logger, spec } = this.#options
    this.#noting = this.#noter
      .look(clock.now())
      .catch((error: unknown) => {
        logger.warn({ error, databaseId: spec.databaseId }, 'the size of a log cannot be noted')
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
    const { clock, logger, memberDir, spec } = this.#options
    if (hasAnswered && code === 0 && this.#noter) {
      await noteClosedLog(memberDir, clock.now()).catch((error: unknown) => {
        logger.warn({ error, databaseId: spec.databaseId }, 'the size of a log cannot be noted')
      })
    }
    if (!hasAnswered && stopping === 'no') await this.#diagnoseRefusal(output)
  }

  async #diagnoseRefusal(said: string): Promise<void> {
    const { clock, logger, memberDir, quarantineDir, spec } = this.#options
    const place = { quarantineDir, databaseId: spec.databaseId, memberDir, atMs: clock.now() }
    const refusal = await diagnoseRefusal(said, place)
    if (!refusal) return
    if (refusal.kind === 'unreadable') {
      this.#options.onReport(refusal.report)
      throw new UnservableData(refusal.report)
    }
    const { report, cutBytes, keptIn } = refusal
    const facts = { databaseId: spec.databaseId, cutBytes, quarantine: keptIn }
    logger.warn(facts, 'the log of a database ended in the middle of a command; its end was cut off and kept')
    if (report.kind !== 'whole') this.#options.onReport(report)
  }
}
