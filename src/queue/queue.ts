import { type Clock, ClockWatch, type TargetPolicy } from '../base/index.js'
import { type Cluster, singleNode } from '../cluster/index.js'
import type { Route } from '../http/index.js'
import type { Store } from '../store/index.js'
import { type Logger, QueueMeter, type Tracer } from '../telemetry/index.js'
import { deadLetterRoutes } from './api/dead-letter-routes.js'
import type { ApiDeps, SigningKeyring } from './api/deps.js'
import { eventRoutes } from './api/event-routes.js'
import { flowRoutes } from './api/flow-routes.js'
import { groupRoutes } from './api/group-routes.js'
import { keyRoutes, verifyRoutes } from './api/key-routes.js'
import { messageRoutes } from './api/message-routes.js'
import { publishRoutes } from './api/publish-routes.js'
import { queueRoutes } from './api/queue-routes.js'
import { scheduleRoutes } from './api/schedule-routes.js'
import { ClockCorrection } from './dispatcher/clock-correction.js'
import { Dispatcher } from './dispatcher/dispatcher.js'
import type { DispatcherDeps } from './dispatcher/dispatcher-deps.js'
import { sweepKeys } from './key-sweep.js'
import { PlainKind } from './plain-kind.js'
import { refuseForbiddenItem } from './publish/destination.js'
import { type DropReplaced, Publishing } from './publish/publishing.js'
import { QueueNodes } from './queue-nodes.js'
import { ByteBudget, Retention } from './retention.js'
import { Scheduler } from './schedules/scheduler.js'
import type { RequestSender } from './sending/sender.js'
import type { PendingRow, PublishEntry } from './transactions/messages.js'
import * as messagesNext from './transactions/messages-next.js'
import * as messagesRetention from './transactions/messages-retention.js'
import * as schedules from './transactions/schedules.js'
import type {
  DeadLetterSource,
  DropSelector,
  FlowHold,
  Intake,
  LargeCancel,
  MessageKind,
  Outbound,
  PublishItem,
  Queue,
  QueueLoad,
  QueueRest,
  ToSign,
} from './types.js'
import { type OnAttempt, watchedKind } from './watched-kind.js'

/** What a queue is built from. */
export interface QueueDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly keys: SigningKeyring
  /** Requests in flight at once, without slow ones. */
  readonly deliveryConcurrency: number
  /** Longest time of one attempt. */
  readonly deliveryTimeoutMs: number
  /** Bytes kept of each response body. */
  readonly responseKeepBytes: number
  /** How long `stop` waits for requests in flight. */
  readonly shutdownGraceMs: number
  /** How long ended messages stay in the logs, and dead letters in the dead letter queue. */
  readonly retentionMs: number
  /** Limit for the content of ended messages, their logs and dead letters. The oldest are deleted beyond it. */
  readonly retentionBytes: number
  /** Most schedules of an account. Default: no limit. */
  readonly accountSchedules?: number
  /** Which destinations may be contacted. Default: everything. */
  readonly deliveryTargets?: TargetPolicy
  /** Accounts whose messages are not delivered now; read at the start and by `accountsChanged`. Default: none. */
  readonly heldAccounts?: () => ReadonlySet<string>
  /** Daily message limit of an account, for schedules; `undefined`: no limit. Publish requests have it in their caller. */
  readonly dailyMessagesOf?: (accountId: string) => number | undefined
  /** Counts what happens, for metrics. */
  readonly meter?: QueueMeter
  /** Sent as `Upstash-Region`, upper case, with every delivery. Default `us-east-1`. */
  readonly region?: string
  /** Called after the outcome of each attempt is committed. Default: nobody is notified, at no cost. */
  readonly onAttempt?: OnAttempt | undefined
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
  /** The nodes that use the store. Default: this one is alone. */
  readonly cluster?: Cluster
  /** Makes the requests of deliveries. Default: over HTTP. */
  readonly sender?: RequestSender
}

const DEFAULT_REGION = 'us-east-1'
/** Most flow-control keys in one message to the other nodes. */
const KEYS_PER_MESSAGE = 1_000

const NO_ACCOUNTS: ReadonlySet<string> = new Set()

const ROUTES = [
  publishRoutes,
  messageRoutes,
  groupRoutes,
  queueRoutes,
  scheduleRoutes,
  flowRoutes,
  verifyRoutes,
  deadLetterRoutes,
  eventRoutes,
  keyRoutes,
]

/** Builds the queue of a store. It delivers after `start`; register kinds and intakes before that. */
export function createQueue(deps: QueueDeps): Queue {
  return new StoredQueue(deps)
}

const targetsOf = (deps: QueueDeps): TargetPolicy => deps.deliveryTargets ?? 'everything'

function dispatcherDeps(deps: QueueDeps, meter: QueueMeter): DispatcherDeps {
  const { store, clock, logger, keys, tracer } = deps
  return {
    store,
    clock,
    logger,
    meter,
    concurrency: deps.deliveryConcurrency,
    timeoutMs: deps.deliveryTimeoutMs,
    keepBytes: deps.responseKeepBytes,
    graceMs: deps.shutdownGraceMs,
    signingKey: (accountId) => keys.signingKeys(accountId).current,
    targets: targetsOf(deps),
    // The hosted service sends the region in upper case; SDKs choose their signing keys by it (reference queue 3.1).
    tracer,
    region: (deps.region ?? DEFAULT_REGION).toUpperCase(),
    cluster: deps.cluster ?? singleNode(),
    sender: deps.sender,
  }
}

class StoredQueue implements Queue {
  readonly name = 'queue'
  readonly #dispatcher: Dispatcher
  readonly #publishing: Publishing
  readonly #retention: Retention
  readonly #scheduler: Scheduler
  readonly #clockCorrection: ClockCorrection
  readonly #clockWatch: ClockWatch
  readonly #logger: Logger
  #correcting: Promise<void> = Promise.resolve()
  readonly #deadLetterSources = new Map<string, DeadLetterSource>()
  readonly #api: ApiDeps
  readonly #onAttempt: OnAttempt | undefined
  readonly #heldAccounts: () => ReadonlySet<string>
  readonly #cluster: Cluster
  readonly #nodes: QueueNodes
  #largeCancel: LargeCancel | undefined

  constructor(deps: QueueDeps) {
    const { store, clock, logger, tracer, meter = new QueueMeter() } = deps
    const limits = { timeoutMs: deps.deliveryTimeoutMs }
    const offer = (rows: readonly PendingRow[]): void => this.offer(rows)
    this.#onAttempt = deps.onAttempt
    this.#cluster = deps.cluster ?? singleNode()
    this.#heldAccounts = deps.heldAccounts ?? (() => NO_ACCOUNTS)
    this.#dispatcher = new Dispatcher(dispatcherDeps(deps, meter))
    this.addKind(new PlainKind({ store, clock, tracer }))
    const targets = targetsOf(deps)
    const partitionFor = (accountId: string): number | undefined =>
      this.#cluster.isSingleNode ? undefined : this.#cluster.partitionFor(accountId, undefined)
    const drop: DropReplaced = (seqs, entries) => this.#dropReplaced(seqs, entries)
    this.#publishing = new Publishing({ store, clock, limits, targets, offer, drop, meter, tracer, partitionFor })
    this.#scheduler = new Scheduler({
      store,
      clock,
      logger,
      offer,
      drop,
      meter,
      tracer,
      partitionFor,
      isLeader: () => this.#cluster.isLeader,
      isHeld: (accountId) => this.#heldAccounts().has(accountId),
      dailyMessagesOf: deps.dailyMessagesOf ?? (() => undefined),
    })
    this.#clockCorrection = new ClockCorrection(deps)
    this.#clockWatch = new ClockWatch(clock, (byMs) => this.#onJump(byMs))
    this.#logger = logger
    this.#retention = this.#retentionOf(deps)
    this.#nodes = new QueueNodes({
      store,
      clock,
      cluster: this.#cluster,
      dispatcher: this.#dispatcher,
      onSchedules: () => this.#scheduler.fireDue(),
      onLeader: () => this.#scheduler.clockChanged(),
    })
    this.#nodes.join()
    this.#api = this.#apiOf(deps, limits)
  }

  #retentionOf({ store, clock, logger, retentionMs, retentionBytes }: QueueDeps): Retention {
    const isDue = (goesOn: () => boolean) => () => goesOn() && this.#cluster.isLeader
    const budget = new ByteBudget({
      keepBytes: retentionBytes,
      measure: (step) => store.run(messagesRetention.measure, step),
      trim: (step) => store.run(messagesRetention.trim, step),
    })
    return new Retention({
      name: 'messages',
      clock,
      logger,
      keepMs: retentionMs,
      beforeSweep: ({ now, finishedBefore: before }, goesOn) =>
        sweepKeys(store, { now, before }, (keys) => this.forgetFlowKeys(keys), isDue(goesOn)),
      sweep: async (step) => (this.#cluster.isLeader ? store.run(messagesRetention.sweep, step) : undefined),
      afterSweep: (goesOn) => budget.enforce(isDue(goesOn)),
    })
  }

  #apiOf(deps: QueueDeps, limits: ApiDeps['limits']): ApiDeps {
    return {
      store: deps.store,
      clock: deps.clock,
      keys: deps.keys,
      limits,
      accountSchedules: deps.accountSchedules,
      targets: targetsOf(deps),
      publishing: this.#publishing,
      flow: this.#dispatcher.flow,
      deadLetterSources: this.#deadLetterSources,
      offer: (rows) => this.offer(rows),
      dropEverywhere: (which) => this.dropEverywhere(which),
      nodes: this.#nodes,
      schedulesChanged: () => this.#nodes.schedulesChanged(),
      largeCancel: () => this.#largeCancel,
    }
  }

  async forgetFlowKeys(keys: readonly { account_id: string; flow_key: string }[]): Promise<void> {
    for (let from = 0; from < keys.length; from += KEYS_PER_MESSAGE) {
      const batch = keys.slice(from, from + KEYS_PER_MESSAGE).map((row) => [row.account_id, row.flow_key] as const)
      // New messages may have named the keys again since their deletion, so the nodes read them from the store.
      await this.#nodes.flowChanged({ keys: batch, isReset: false })
    }
  }

  async start(): Promise<void> {
    // In a cluster, stored times come from several clocks, each checked against PostgreSQL's. So no node shifts them.
    if (this.#cluster.isSingleNode) await this.#clockCorrection.settle()
    await this.#nodes.start()
    this.#clockWatch.start()
    this.accountsChanged()
    await this.#dispatcher.start()
    await this.#scheduler.start()
    await this.#retention.start()
  }

  async stop(graceMs?: number): Promise<void> {
    this.#clockWatch.stop()
    await this.#correcting
    await this.#retention.stop()
    await this.#scheduler.stop()
    await this.#dispatcher.stop(graceMs)
  }

  /** After a jump ahead, sends what has become due. After a jump back, corrects due times, so that nothing waits longer. */
  #onJump(byMs: number): void {
    if (byMs > 0) this.#logger.warn('queue_clock_jumped', { byMs })
    this.#scheduler.clockChanged()
    if (byMs > 0) this.#dispatcher.limitsChanged()
    else this.#correct(-byMs)
  }

  #correct(byMs: number): void {
    this.#correcting = this.#correcting
      .then(() => (this.#cluster.isSingleNode ? this.#clockCorrection.correct(byMs) : undefined))
      .catch((error: unknown) => this.#logger.error('queue_clock_not_corrected', { error }))
      .then(() => this.#dispatcher.rewind())
  }

  offer(rows: readonly PendingRow[], isAgain?: boolean): void {
    if (rows.length > 0) this.#dispatcher.offer(rows, isAgain)
  }

  drop(which: DropSelector): void {
    this.#dispatcher.drop(which)
  }

  /**
   * A replaced message of a singleton key may be in flight on any node. A replaced message of a debounce key is not:
   * before the first attempt, the node that sends it checks in the store whether it was replaced (`PlainKind.prepare`).
   */
  async #dropReplaced(seqs: readonly number[], entries: readonly PublishEntry[]): Promise<void> {
    if (entries.some(({ rule }) => rule?.kind === 'singleton')) await this.dropEverywhere({ seqs })
    else this.drop({ seqs })
  }

  async dropEverywhere(which: DropSelector): Promise<void> {
    this.#dispatcher.drop(which)
    await this.#nodes.drop(which)
  }

  accountsChanged(): void {
    this.#dispatcher.hold(this.#heldAccounts())
  }

  get load(): QueueLoad {
    return this.#dispatcher.load
  }

  refuseForbidden(urls: readonly string[], headers: PublishItem['headers']): void {
    refuseForbiddenItem(urls, headers, this.#api.targets)
  }

  signAhead(message: ToSign, outbound: Outbound): Outbound {
    return this.#dispatcher.headers.ahead(message, outbound)
  }

  flowHold(accountId: string, flowKey: string): FlowHold | undefined {
    const { flow, clock } = this.#api
    return flow.hold(accountId, flowKey, clock.now())
  }

  async rest(): Promise<QueueRest> {
    const { store, clock, flow } = this.#api
    const now = clock.now()
    const [message, schedule] = await Promise.all([
      store.run(messagesNext.dueAfter, { now }),
      store.run(schedules.next, { after: 0 }).then((nextAt) => nextAt ?? Number.POSITIVE_INFINITY),
    ])
    const isIdle = this.#dispatcher.isIdle && schedule > now
    return { isIdle, nextAt: Math.min(message, schedule, flow.wakeAt()) }
  }

  addKind(kind: MessageKind): void {
    this.#dispatcher.addKind(this.#onAttempt ? watchedKind(kind, this.#onAttempt) : kind)
  }

  addIntake(intake: Intake): void {
    this.#publishing.addIntake(intake)
  }

  addDeadLetters(source: DeadLetterSource): void {
    this.#deadLetterSources.set(source.name, source)
  }

  delegateLargeCancels(cancel: LargeCancel): void {
    this.#largeCancel = cancel
  }

  routes(): readonly Route[] {
    return ROUTES.flatMap((make) => make(this.#api))
  }
}
