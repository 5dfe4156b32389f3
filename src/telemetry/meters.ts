import { ATTEMPTS, Histogram, REQUEST_SECONDS, TRANSACTION_SECONDS } from './histogram.js'

/**
 * What modules count for metrics, as plain numbers that only grow. A module increments them where things happen; they are
 * read when somebody scrapes.
 */

/** An outcome of an attempt to deliver a message. */
export type DeliveryOutcome = 'delivered' | 'retried' | 'failed' | 'cancelled'

/** What the queue counts. */
export class QueueMeter {
  published = 0
  deduplicated = 0
  readonly deliveries: Record<DeliveryOutcome, number> = { delivered: 0, retried: 0, failed: 0, cancelled: 0 }
  deadLetters = 0
  flowWaits = 0
  fires = 0
  failedFires = 0
  /** Seconds from sending a request to its complete response. */
  readonly duration = new Histogram(REQUEST_SECONDS)
  /** Seconds from when an attempt was due to when it was sent. */
  readonly delay = new Histogram(REQUEST_SECONDS)
  readonly attempts = new Histogram(ATTEMPTS)
}

/** What workflows count. */
export class WorkflowMeter {
  started = 0
  readonly ended = { success: 0, failed: 0, cancelled: 0 }
  steps = 0
  retries = 0
  /** Seconds of requests to the endpoints of runs. */
  readonly stepDuration = new Histogram(REQUEST_SECONDS)
  /** Seconds of requests of `context.call`. */
  readonly callDuration = new Histogram(REQUEST_SECONDS)
}

/** The outcomes of items of bulk actions. */
export const BULK_OUTCOMES = ['succeeded', 'already_finished', 'already_cancelled', 'not_found', 'failed'] as const

/** What bulk actions count. */
export class BulkMeter {
  active = 0
  readonly items: Record<(typeof BULK_OUTCOMES)[number], number> = {
    succeeded: 0,
    already_finished: 0,
    already_cancelled: 0,
    not_found: 0,
    failed: 0,
  }
}

/** Transactions of one kind of access. */
export class TransactionMeter {
  pending = 0
  failed = 0
  /** Seconds from the call to the result. */
  readonly duration = new Histogram(TRANSACTION_SECONDS)

  /** A transaction has ended that was asked for at `startedMs`, by `performance.now()`. */
  ended(startedMs: number, nowMs: number): void {
    this.pending--
    this.duration.record((nowMs - startedMs) / 1_000)
  }
}

/** What the store counts. */
export class StoreMeter {
  readonly read = new TransactionMeter()
  readonly write = new TransactionMeter()
  checkpoints = 0
}

/** What the databases and the engines count. */
export class DatabasesMeter {
  wakeUps = 0
  engineFailures = 0
  readonly backups = { completed: 0, failed: 0 }
}

/** The meters of a server. */
export class ServerMeters {
  readonly queue = new QueueMeter()
  readonly workflow = new WorkflowMeter()
  readonly bulk = new BulkMeter()
  readonly store = new StoreMeter()
  readonly databases = new DatabasesMeter()
}
