import type { Clock } from '../../base/index.js'
import type { ExitReport } from '../launcher/client.js'
import type { DataReport, EngineSpec, FleetLogger } from '../types.js'
import { diagnoseRefusal, inspectData, UnservableData } from './damage.js'
import { DataSizeRecorder, type MeasuredData, recordClosedData } from './log-files.js'

/** Collaborators and settings of the watch over one primary's data. */
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

/**
 * Checks the data of a primary before its engine starts, records the sizes of its files while it runs, and diagnoses a
 * refusal after it ended.
 */
export class PrimaryData {
  readonly #options: PrimaryDataOptions
  readonly #recorder: DataSizeRecorder
  #isMeasuring = false
  #recording: Promise<void> | undefined
  #report: DataReport = { kind: 'whole' }

  constructor(options: PrimaryDataOptions) {
    this.#options = options
    this.#recorder = new DataSizeRecorder(options.memberDir, options.spec.persistence)
  }

  /** Checks the data before the start. Rejects with `UnservableData` when the engine must not start. */
  async inspect(): Promise<void> {
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

  /** Called when the engine has loaded its data. */
  onAnswer(): void {
    if (this.#report.kind === 'whole') this.#options.onReport(this.#report)
  }

  /**
   * Measures the data, unless an earlier measurement still runs, as on a disk that hangs. Never rejects.
   * @returns a function that records the measured sizes. Call it when the engine has answered a request that was sent after
   * the measurement.
   */
  async measure(): Promise<(() => void) | undefined> {
    if (this.#isMeasuring) return undefined
    this.#isMeasuring = true
    const measured = await this.#recorder.measure().catch((error: unknown) => this.#onNotRecorded(error))
    this.#isMeasuring = false
    return measured && (() => this.#record(measured))
  }

  /** An engine that has answered since the measurement has completed the command that it was writing then. */
  #record(measured: MeasuredData): void {
    if (this.#recording) return
    this.#recording = this.#recorder
      .record(measured, this.#options.clock.now())
      .catch((error: unknown) => this.#onNotRecorded(error))
      .finally(() => {
        this.#recording = undefined
      })
  }

  #onNotRecorded(error: unknown): undefined {
    const { logger, spec } = this.#options
    logger.warn('engine_log_sizes_not_recorded', { error, databaseId: spec.databaseId })
  }

  /**
   * Called when the engine has ended. Records the sizes of the files that the engine closed, or diagnoses why it refused
   * its data. Rejects with `UnservableData` when the engine would refuse its data again.
   */
  async afterEnd({ code, output }: ExitReport, hasAnswered: boolean, stopping: string): Promise<void> {
    await this.#recording
    const { clock, memberDir, spec } = this.#options
    if (hasAnswered && code === 0) {
      const recorded = recordClosedData(memberDir, spec.persistence, clock.now())
      await recorded.catch((error: unknown) => this.#onNotRecorded(error))
    }
    if (!hasAnswered && stopping === 'no') await this.#diagnoseRefusal(output)
  }

  async #diagnoseRefusal(output: string): Promise<void> {
    const { clock, logger, memberDir, quarantineDir, spec } = this.#options
    const place = { quarantineDir, databaseId: spec.databaseId, memberDir, atMs: clock.now() }
    const refusal = await diagnoseRefusal(output, place)
    if (!refusal) return
    if (refusal.kind === 'unreadable') {
      this.#options.onReport(refusal.report)
      throw new UnservableData(refusal.report)
    }
    const { report, cutBytes, keptIn } = refusal
    logger.warn('engine_log_cut', { databaseId: spec.databaseId, cutBytes, kept: keptIn })
    if (report.kind !== 'whole') this.#options.onReport(report)
  }
}
