import type { Clock, Service } from '../base/index.js'
import { type Cluster, singleNode } from '../cluster/index.js'
import type { Route } from '../http/index.js'
import { ByteBudget, type Queue, Retention } from '../queue/index.js'
import type { Store } from '../store/index.js'
import { type Logger, type Tracer, WorkflowMeter } from '../telemetry/index.js'
import { deadLetterRoutes, RunDeadLetters } from './dead-letters/dead-letter-routes.js'
import { logRoutes } from './logs/log-routes.js'
import { eventRoutes } from './runs/event-routes.js'
import { InFlightDeliveries } from './runs/in-flight.js'
import { RunIntake } from './runs/intake.js'
import { sweepRunKeys } from './runs/key-sweep.js'
import { notifiedRoutes } from './runs/notified-routes.js'
import { pauseRoutes } from './runs/pause-routes.js'
import { RecentLists } from './runs/recent-lists.js'
import { RefusedReturns } from './runs/refused-returns.js'
import { restartRoutes } from './runs/restart-routes.js'
import { RunMessages } from './runs/run-messages.js'
import { RunNodes } from './runs/run-nodes.js'
import { runRoutes } from './runs/run-routes.js'
import type { TriggerGate } from './runs/trigger-gate.js'
import { triggerRoutes } from './runs/trigger-routes.js'
import * as runsNotified from './transactions/runs-notified.js'
import * as runsRetention from './transactions/runs-retention.js'

/** The collaborators and limits of the module. */
export interface WorkflowDeps {
  readonly store: Store
  readonly queue: Queue
  readonly clock: Clock
  readonly logger: Logger
  /** Timeout of one attempt of a delivery. */
  readonly deliveryTimeoutMs: number
  /** The account of a `UserID`; `undefined` for none. Webhook addresses contain one. */
  readonly accountOfUser: (userId: string) => string | undefined
  /** Public URL of the service. */
  readonly publicUrl: string
  /** How long ended runs are kept for the logs. */
  readonly retentionMs: number
  /** Space for ended runs with their logs and dead letters; the oldest are deleted first. */
  readonly retentionBytes: number
  /** Limit of the body of a request to this server. */
  readonly queueBodyLimitBytes: number
  /** Bytes of a response that are kept for logs and dead letters. */
  readonly responseKeepBytes: number
  /** Counts what happens, for metrics. */
  readonly meter?: WorkflowMeter
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
  /** The nodes that use the store. Default: this one is alone. */
  readonly cluster?: Cluster
  /** A larger list is not sent, because the SDK can fetch it. Default 32 MiB. */
  readonly inlineLimitBytes?: number
  /** A run with a larger list fails. Default 256 MiB. */
  readonly listLimitBytes?: number
}

/** The module as `server/` sees it. As a service it deletes old runs; the queue makes the deliveries. */
export interface Workflow extends Service {
  /** The HTTP operations on runs. Steps and triggers of SDKs arrive through the publish endpoints of the queue. */
  routes(): readonly Route[]
  /** Registers the gate that decides which runs may start. Call it before the first request. */
  guard(gate: TriggerGate): void
}

/** Builds the module and registers it with the queue, which must not have started yet. */
export function createWorkflow(deps: WorkflowDeps): Workflow {
  const { store, queue, clock, tracer, cluster = singleNode(), meter = new WorkflowMeter() } = deps
  const limits = { timeoutMs: deps.deliveryTimeoutMs }
  const inFlight = new InFlightDeliveries(deps.deliveryTimeoutMs)
  const lists = new RecentLists()
  const refusedReturns = new RefusedReturns()
  const nodes = new RunNodes({ cluster, now: () => clock.now(), queue, lists, inFlight, refusedReturns })
  const { inlineLimitBytes, listLimitBytes } = deps
  const intake = new RunIntake({ store, queue, clock, limits, lists, inFlight, meter, tracer, inlineLimitBytes })
  queue.addIntake(intake)
  const { queueBodyLimitBytes: bodyLimitBytes, responseKeepBytes } = deps
  const responseLimits = { inlineLimitBytes, listLimitBytes, bodyLimitBytes, responseKeepBytes }
  queue.addKind(new RunMessages({ store, clock, inFlight, lists, nodes, refusedReturns, meter, ...responseLimits }))
  queue.addDeadLetters(new RunDeadLetters(store))
  const retention = retentionOf(deps, cluster)
  let unsubscribe = (): void => undefined
  return {
    name: 'workflow',
    start: () => {
      unsubscribe = store.onLostCommit(() => lists.clear())
      return retention.start()
    },
    stop: () => {
      unsubscribe()
      return retention.stop()
    },
    guard: (gate) => intake.guard(gate),
    routes: () => [
      ...triggerRoutes({ intake, clock, tracer }),
      ...runRoutes({ store, queue, clock, lists, nodes, refusedReturns, meter }),
      ...pauseRoutes({ store, queue, clock }),
      ...restartRoutes({ store, queue, clock, limits, lists, meter, gate: intake, inlineLimitBytes }),
      ...logRoutes({ store, queue, clock, inFlight, nodes }),
      ...deadLetterRoutes({ store, queue, clock, limits, gate: intake, meter }),
      ...eventRoutes({ ...deps, limits }),
      ...notifiedRoutes(deps),
    ],
  }
}

/** How long received events are kept. */
const KEEP_NOTIFIED_MS = 3 * 86_400_000
const NOTIFIED_PER_BATCH = 500

/** Deletes old received events, and the oldest of an account that has too many. */
async function sweepNotified({ store, clock }: WorkflowDeps, goesOn: () => boolean): Promise<void> {
  const limit = NOTIFIED_PER_BATCH
  const now = clock.now()
  const before = now - KEEP_NOTIFIED_MS
  for (let after: number | undefined = 0; after !== undefined && goesOn(); )
    after = await store.run(runsNotified.sweepNotified, { after, before, now, limit })
  for (let after: string | undefined = ''; after !== undefined && goesOn(); )
    after = (await store.run(runsNotified.trimNotified, { after, keep: runsNotified.MAX_NOTIFIED, limit }))?.after
}

/** Deletes old runs. In a cluster only the leader does. */
function retentionOf(deps: WorkflowDeps, cluster: Cluster): Retention {
  const { store, clock, logger, retentionMs, retentionBytes } = deps
  const budget = new ByteBudget({
    keepBytes: retentionBytes,
    measure: (step) => store.run(runsRetention.measureRuns, step),
    trim: (step) => store.run(runsRetention.trimRuns, step),
  })
  return new Retention({
    name: 'runs',
    clock,
    logger,
    keepMs: retentionMs,
    beforeSweep: ({ finishedBefore }, shouldContinue) =>
      sweepRunKeys(store, finishedBefore, () => shouldContinue() && cluster.isLeader),
    sweep: async (step) => (cluster.isLeader ? store.run(runsRetention.sweepRuns, step) : undefined),
    afterSweep: async (shouldContinue) => {
      const goesOn = () => shouldContinue() && cluster.isLeader
      await budget.enforce(goesOn)
      await sweepNotified(deps, goesOn)
    },
  })
}
