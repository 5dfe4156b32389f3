import type { Clock } from '../base/index.js'
import type { Logger } from './logger.js'

/** What a problem is about. The kind and the subject together identify it. */
export type ProblemKind =
  | 'crash'
  | 'data_missing'
  | 'engine_hung'
  | 'log_truncated'
  | 'quarantine'
  | 'store_damaged'
  | 'tls_files'

/** Something that only a person can put right, as the module that found it tells it. */
export interface ProblemReport {
  readonly kind: ProblemKind
  /** What it concerns: a database id, a table, a file relative to the data directory. Never a secret. */
  readonly subject: string
  /** `error`: data is lost or refused. `warning`: everything serves, but somebody should look. */
  readonly severity: 'warning' | 'error'
  /** What is wrong and what was found, one sentence. */
  readonly title: string
  /** What to do, with the command that helps. */
  readonly advice: string
  /** Whose it is; absent: the server's own. */
  readonly accountId?: string
}

/** A problem that is not solved yet. */
export interface Problem extends ProblemReport {
  /** When it was first seen in this life of the process, Unix milliseconds. */
  readonly sinceMs: number
  /** How often it was seen. */
  readonly count: number
}

/** Beyond this many, further problems are only logged: a broken disk must not fill the memory. */
const MOST_PROBLEMS = 1_000

/**
 * What needs a person: `/health` counts it, Home of the console shows it, the log has a line for each.
 *
 * Kept in memory only. Whoever reports a problem finds it again after a restart, or stores it.
 */
export class Problems {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #open = new Map<string, Problem>()

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** How many are not solved. */
  get count(): number {
    return this.#open.size
  }

  /** Notes a problem, or that it was seen once more; only the first sight is logged. */
  report(report: ProblemReport): void {
    const key = keyOf(report.kind, report.subject)
    const known = this.#open.get(key)
    if (!known) this.#log(report)
    if (!known && this.#open.size >= MOST_PROBLEMS) return
    const sinceMs = known?.sinceMs ?? this.#clock.now()
    this.#open.set(key, { ...report, sinceMs, count: (known?.count ?? 0) + 1 })
  }

  /** A problem is solved; nothing happens when it was not known. */
  resolve(kind: ProblemKind, subject: string): void {
    if (this.#open.delete(keyOf(kind, subject))) this.#logger.info({ kind, subject }, 'a problem is solved')
  }

  /** The problems that an account may see: its own and the server's, the oldest first. */
  visibleTo(accountId: string): readonly Problem[] {
    return [...this.#open.values()].filter((problem) => (problem.accountId ?? accountId) === accountId)
  }

  #log({ kind, subject, severity, title, advice }: ProblemReport): void {
    const text = `${title} ${advice}`
    if (severity === 'error') this.#logger.error({ kind, subject }, text)
    else this.#logger.warn({ kind, subject }, text)
  }
}

const keyOf = (kind: ProblemKind, subject: string): string => `${kind} ${subject}`
