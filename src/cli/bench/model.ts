/**
 * The cost model: the cost of an operation, and the load that a machine carries. `docs/scale.md` explains it and shows its
 * predictions; `homeport bench` prints them beside its measurements.
 *
 * An operation needs processor time of three kinds: of the server's main thread, of its other threads and engines, and of
 * the callers if they share the machine. It also waits for commits, one after the other. A caller that is alone pays for
 * every wake-up, system call and commit; N callers share them. So an operation among N callers costs as much as in a busy
 * server, plus 1/N of the additional cost that it has when it is alone.
 *
 * The path of an operation is its time in an idle server: the processor time of the main thread and of the caller, and its
 * commits. (The store's thread works during the commits.) Each of the other callers delays it by the time that it uses of
 * the busiest resource: the main thread, which is one core, or all cores together. So N callers get N operations in the time
 * of one path and N - 1 such delays. This is the usual approximation of a closed queueing network with one bottleneck.
 */

/** Processor time of one operation on the reference machine, microseconds. */
export interface Work {
  /** Of the server's main thread. */
  readonly mainUs: number
  /** Of its store's thread, of V8's helpers and of engines. */
  readonly otherUs: number
  /** Of `homeport bench`, which calls and receives deliveries. */
  readonly callerUs: number
}

/** The cost of one operation. */
export interface Cost {
  /** With one caller. */
  readonly alone: Work
  /** With many callers, who share everything that can be shared. */
  readonly busy: Work
  /** Durable commits that follow one another. */
  readonly commits: number
}

/** The workloads of `homeport bench`, in the order of its report. */
export const WORKLOADS = ['publish', 'deliver', 'steps', 'cancel', 'commands', 'rest'] as const

/** The name of a workload. */
export type Workload = (typeof WORKLOADS)[number]

/** A machine with its load. */
export interface Machine {
  readonly cores: number
  /** Speed of a core, as a multiple of the reference machine. */
  readonly speed: number
  /** Median time of a durable write of a page, microseconds. */
  readonly syncUs: number
  /** The callers run on the same cores. */
  readonly sharesCores: boolean
}

/** The prediction of the model for a workload. */
export interface Prediction {
  readonly perSecond: number
  /** The resource that limits, or would limit, more callers. */
  readonly bound: 'main thread' | 'cores' | 'plan'
}

/**
 * Predicts how many operations a second a server on SQLite carries.
 * @param callers how many operations run at a time; `Infinity` for as many as it carries.
 * @param limitPerSecond operations a second that the plan of the database allows.
 */
export function predict(cost: Cost, machine: Machine, callers: number, limitPerSecond = Infinity): Prediction {
  const { cores, speed, syncUs, sharesCores } = machine
  const { mainUs, otherUs, callerUs } = workAmong(cost, callers)
  const everywhereUs = (mainUs + otherUs + (sharesCores ? callerUs : 0)) / cores
  const isMainBusiest = mainUs >= everywhereUs
  const pathUs = (mainUs + callerUs) / speed + cost.commits * syncUs
  const perSecond = 1e6 / (pathUs / callers + (1 - 1 / callers) * (Math.max(mainUs, everywhereUs) / speed))
  if (perSecond > limitPerSecond) return { perSecond: limitPerSecond, bound: 'plan' }
  return { perSecond, bound: isMainBusiest ? 'main thread' : 'cores' }
}

function workAmong({ alone, busy }: Cost, callers: number): Work {
  const among = (one: number, many: number): number => many + (one - many) / callers
  return {
    mainUs: among(alone.mainUs, busy.mainUs),
    otherUs: among(alone.otherUs, busy.otherUs),
    callerUs: among(alone.callerUs, busy.callerUs),
  }
}

const work = (mainUs: number, otherUs: number, callerUs: number): Work => ({ mainUs, otherUs, callerUs })

/**
 * The cost of an operation of each workload on SQLite, measured by `npm run bench scale` with 64 bytes and no pipeline. A
 * bulk cancel is one caller regardless of its size, so its costs per run are those of a busy server.
 */
export const COSTS: Readonly<Record<Workload, Cost>> = {
  publish: { alone: work(235, 249, 170), busy: work(54, 31, 57), commits: 1 },
  deliver: { alone: work(367, 280, 253), busy: work(110, 52, 111), commits: 1 },
  steps: { alone: work(2870, 2180, 1590), busy: work(1050, 600, 740), commits: 7 },
  cancel: { alone: work(12.5, 0, 0), busy: work(12.5, 0, 0), commits: 0 },
  commands: { alone: work(54, 20, 44), busy: work(10.4, 3, 10.5), commits: 0 },
  rest: { alone: work(120, 26, 140), busy: work(28, 5, 42), commits: 0 },
}

/** How much an operation adds to the SQLite file, bytes; SQLite reuses the space of rows that retention deletes. */
export const STORED_BYTES: Readonly<Partial<Record<Workload, number>>> = {
  publish: 400,
  deliver: 600,
  steps: 1_750,
  cancel: 340,
}

/** The cost of an operation on PostgreSQL in a busy server: processor time of a node and of PostgreSQL, microseconds. */
export interface ClusterCost {
  readonly nodeMainUs: number
  readonly postgresUs: number
}

/** The workloads that use PostgreSQL; commands do not. */
export const CLUSTER_COSTS: Readonly<Partial<Record<Workload, ClusterCost>>> = {
  publish: { nodeMainUs: 95, postgresUs: 42 },
  deliver: { nodeMainUs: 236, postgresUs: 94 },
  steps: { nodeMainUs: 2090, postgresUs: 2920 },
  cancel: { nodeMainUs: 3.5, postgresUs: 18 },
}

/** Predicts the throughput of a cluster: its nodes' main threads together, or the cores of PostgreSQL, limit it. */
export function predictCluster({ nodeMainUs, postgresUs }: ClusterCost, nodes: number, postgresCores: number) {
  const ofNodes = (nodes * 1e6) / nodeMainUs
  const ofPostgres = (postgresCores * 1e6) / postgresUs
  return ofNodes <= ofPostgres
    ? ({ perSecond: ofNodes, bound: 'nodes' } as const)
    : ({ perSecond: ofPostgres, bound: 'PostgreSQL' } as const)
}
