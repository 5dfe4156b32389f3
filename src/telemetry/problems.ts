import type { Clock, Timer } from '../base/index.js'
import type { Logger } from './logger.js'

/** All kinds of problems. `docs/operations.md` says what each is about. */
export const PROBLEM_KINDS = [
  'backup_storage',
  'crash',
  'data_missing',
  'engine_hung',
  'log_truncated',
  'node_lost',
  'quarantine',
  'service_backup',
  'store_clock',
  'store_damaged',
  'store_full',
  'tls_files',
] as const

/** Kind of a problem. Kind and subject together identify it. */
export type ProblemKind = (typeof PROBLEM_KINDS)[number]

/** Something that only a person can put right, as reported by the module that found it. */
export interface ProblemReport {
  readonly kind: ProblemKind
  /** The affected database id, table, or file relative to the data directory. Never a secret. */
  readonly subject: string
  /** `error`: data is lost or refused. `warning`: everything works, but somebody should look. */
  readonly severity: 'warning' | 'error'
  /** What is wrong, one sentence. */
  readonly title: string
  /** What to do, with the command that helps. */
  readonly advice: string
  /** The account it belongs to; absent for a problem of the server. */
  readonly accountId?: string
}

/** An unsolved problem. */
export interface Problem extends ProblemReport {
  /** When this process saw it first, Unix milliseconds. */
  readonly sinceMs: number
  /** How often it was reported. */
  readonly count: number
}

/** Beyond this many, further problems are only logged: a broken disk must not fill the memory. */
const MAX_PROBLEMS = 1_000

/**
 * The unsolved problems: `/health` counts them, Home of the console shows them, the log has a line for each.
 *
 * They are kept in memory only. A module that reports a problem must detect it again after a restart, or store it.
 */
export class Problems {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #open = new Map<string, Problem>()
  /** Timers that resolve the problems of `reportUntilCalm`. */
  readonly #ends = new Map<string, Timer>()

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** Number of unsolved problems. */
  get count(): number {
    return this.#open.size
  }

  /** Adds a problem, or counts it again if it is known; logs only the first report. */
  report(report: ProblemReport): void {
    const key = keyOf(report.kind, report.subject)
    const known = this.#open.get(key)
    if (!known) this.#log(report)
    if (!known && this.#open.size >= MAX_PROBLEMS) return
    const sinceMs = known?.sinceMs ?? this.#clock.now()
    this.#open.set(key, { ...report, sinceMs, count: (known?.count ?? 0) + 1 })
  }

  /** Adds a problem whose end no module can detect. It counts as solved once it was not reported for `calmMs`. */
  reportUntilCalm(report: ProblemReport, calmMs: number): void {
    this.report(report)
    const key = keyOf(report.kind, report.subject)
    this.#ends.get(key)?.cancel()
    this.#ends.set(
      key,
      this.#clock.after(calmMs, () => this.resolve(report.kind, report.subject)),
    )
  }

  /** Removes a solved problem; does nothing if it is unknown. */
  resolve(kind: ProblemKind, subject: string): void {
    if (this.#open.delete(keyOf(kind, subject))) this.#logger.info('problem_solved', { kind, subject })
  }

  /** All problems, oldest first. */
  all(): readonly Problem[] {
    return [...this.#open.values()]
  }

  /** The problems of an account and of the server, oldest first. */
  visibleTo(accountId: string): readonly Problem[] {
    return [...this.#open.values()].filter((problem) => (problem.accountId ?? accountId) === accountId)
  }

  #log({ kind, subject, severity, title, advice }: ProblemReport): void {
    const fields = { kind, subject, title, advice }
    if (severity === 'error') this.#logger.error('problem_error', fields)
    else this.#logger.warn('problem_warning', fields)
  }
}

const keyOf = (kind: ProblemKind, subject: string): string => `${kind} ${subject}`
