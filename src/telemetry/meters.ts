import { ActivityMeter } from './activity-meter.js'
import { ATTEMPTS, Histogram, REQUEST_SECONDS, TRANSACTION_SECONDS } from './histogram.js'

/**
 * Counters for metrics: plain numbers that only grow. Modules increment them where things happen; a scrape reads them.
 */

/** An outcome of an attempt to deliver a message. */
export type DeliveryOutcome = 'delivered' | 'retried' | 'failed' | 'cancelled'

/** Counters of a destination host. */
class EndpointMeter {
  delivered = 0
  retried = 0
  failed = 0
  /** Seconds from sending requests to their complete responses. */
  seconds = 0
}

/** The name under which all hosts beyond the bound are counted together. */
const OTHER_HOSTS = 'other'

/** Meters of destination hosts: the first hosts have their own, all others share one. */
export class EndpointMeters {
  readonly #most: number
  readonly #byHost = new Map<string, EndpointMeter>()

  /** @param most how many hosts have a meter of their own; with 0 nothing is counted. */
  constructor(most: number) {
    this.#most = most
  }

  /** The meter of a host; `undefined` when hosts are not counted. */
  of(host: string): EndpointMeter | undefined {
    if (this.#most === 0) return undefined
    return this.#byHost.get(host) ?? this.#add(host)
  }

  #add(host: string): EndpointMeter {
    const name = this.#byHost.size < this.#most ? host : OTHER_HOSTS
    const meter = this.#byHost.get(name) ?? new EndpointMeter()
    this.#byHost.set(name, meter)
    return meter
  }

  /** All meters by host. It has the key `other` once there are more hosts than meters. */
  all(): ReadonlyMap<string, EndpointMeter> {
    return this.#byHost
  }
}

/** Counters of the queue. */
export class QueueMeter {
  readonly endpoints: EndpointMeters
  /** By account. */
  readonly activity: ActivityMeter
  published = 0
  deduplicated = 0
  readonly deliveries: Record<DeliveryOutcome, number> = { delivered: 0, retried: 0, failed: 0, cancelled: 0 }
  deadLetters = 0
  flowWaits = 0
  strays = 0
  fires = 0
  failedFires = 0
  /** Seconds from sending a request to its complete response. */
  readonly duration = new Histogram(REQUEST_SECONDS)
  /** Seconds from when an attempt was due to when it was sent. */
  readonly delay = new Histogram(REQUEST_SECONDS)
  readonly attempts = new Histogram(ATTEMPTS)

  /** @param maxEndpoints how many destination hosts are counted one by one. */
  constructor(maxEndpoints = 0, activity = new ActivityMeter()) {
    this.endpoints = new EndpointMeters(maxEndpoints)
    this.activity = activity
  }
}

/** Counters of workflows. */
export class WorkflowMeter {
  /** By account. */
  readonly activity: ActivityMeter
  started = 0
  readonly ended = { success: 0, failed: 0, cancelled: 0 }
  steps = 0
  retries = 0
  /** Seconds of requests to the endpoints of runs. */
  readonly stepDuration = new Histogram(REQUEST_SECONDS)
  /** Seconds of requests of `context.call`. */
  readonly callDuration = new Histogram(REQUEST_SECONDS)

  constructor(activity = new ActivityMeter()) {
    this.activity = activity
  }
}

/** The outcomes of items of bulk actions. */
export const BULK_OUTCOMES = ['succeeded', 'already_finished', 'already_cancelled', 'not_found', 'failed'] as const

/** Counters of bulk actions. */
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

  /** Counts the end of a transaction that was requested at `startedMs`; times by `performance.now()`. */
  ended(startedMs: number, nowMs: number): void {
    this.pending--
    this.duration.record((nowMs - startedMs) / 1_000)
  }
}

/** Counters of the store. */
export class StoreMeter {
  readonly read = new TransactionMeter()
  readonly write = new TransactionMeter()
  checkpoints = 0
}

/** Counters of databases and engines. */
export class DatabasesMeter {
  wakeUps = 0
  /** Databases that this node took over from a lost home. */
  promotions = 0
  engineFailures = 0
  readonly backups = { completed: 0, failed: 0 }
}

/** Counters of a node of a cluster. */
export class ClusterMeter {
  /** Beats that failed, or were not sent because the beat before was still unanswered. */
  beatsMissed = 0
  /** Nodes that this one has declared dead. */
  declaredDead = 0
  /** Notifications that some node did not answer. They were stored as announcements instead. */
  announcements = 0
  /** Seconds that a hand-over of partitions took, from their release until the store names the new owner. */
  readonly handOver = new Histogram(REQUEST_SECONDS)
}

/** The meters of a server. */
export class ServerMeters {
  /** What accounts do, of all modules. */
  readonly activity: ActivityMeter
  readonly queue: QueueMeter
  readonly workflow: WorkflowMeter
  readonly bulk = new BulkMeter()
  readonly store = new StoreMeter()
  readonly databases = new DatabasesMeter()
  readonly cluster = new ClusterMeter()

  /**
   * @param settings how many destination hosts are counted one by one.
   * @param activity what accounts do.
   */
  constructor(
    { metricsEndpoints = 0 }: { readonly metricsEndpoints?: number } = {},
    activity: ActivityMeter = new ActivityMeter(),
  ) {
    this.activity = activity
    this.queue = new QueueMeter(metricsEndpoints, activity)
    this.workflow = new WorkflowMeter(activity)
  }
}
