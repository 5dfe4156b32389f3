import { systemClock } from '../../base/index.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import type { Store } from '../../store/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { Problems, silentLogger } from '../../telemetry/index.js'
import { createDatabases } from '../databases.js'
import type { DatabasesDeps } from '../deps.js'
import type { Databases } from '../interface.js'
import { type ManagementServer, PortGate } from './management.js'
import { NO_TRAFFIC } from './no-traffic.js'

/** A point at which a crash is simulated: after an effect, or right after it was started (`...`). */
export type CrashPoint = string

/** Decides where the process crashes. */
export interface CrashPlan {
  /** Called at every point. */
  readonly at: (point: CrashPoint) => 'continue' | 'crash'
}

const never = (): Promise<never> => new Promise(() => {})

/**
 * The databases of a server process that can crash, on a store and a fleet that survive it. A crash leaves commits, files
 * and engine processes behind. After it, every promise of this object stays pending, as if the process had been killed.
 */
export class CrashableDatabases {
  readonly databases: Databases
  readonly points: CrashPoint[] = []
  readonly #plan: CrashPlan
  readonly #gate: PortGate
  readonly #active = new Set<Promise<unknown>>()
  #isCrashed = false
  #announceCrash = (): void => {}
  /** Resolves when it has crashed. */
  readonly crashed = new Promise<void>((resolve) => {
    this.#announceCrash = resolve
  })

  constructor(server: ManagementServer, plan: CrashPlan) {
    this.#plan = plan
    const { dataDir, redisPorts, accounts } = server
    this.databases = createDatabases({
      dataDir,
      clock: systemClock,
      logger: silentLogger,
      plans: DEFAULT_PLANS,
      store: this.#storeOf(server.store),
      fleet: this.#fleetOf(server.fleet),
      settings: {
        redisPorts,
        publicRedisHost: 'localhost',
        publicRestUrl: 'http://127.0.0.1:8701',
        redisTlsByDefault: false,
        proxyTerminatesTls: false,
        freeAccountDatabases: 1,
        paidAccountDatabases: 1000,
        manualBackups: 100,
        awakeDatabases: 1000,
        usageFlushMs: 10_000,
        deliveryTargets: 'everything' as const,
        redisDomain: undefined,
        redisDomainPort: 8703,
        acceptUnknownData: 'few' as const,
        quarantineMs: 7 * 86_400_000,
      },
      problems: new Problems(systemClock, silentLogger),
      isOperator: () => true,
      traffic: NO_TRAFFIC,
      emailOf: (accountId) => accounts.account(accountId)?.email ?? '',
      onServing: (databaseId) => this.#effect('port opened', () => this.#gate.open(databaseId)),
    })
    this.#gate = new PortGate(this.databases.directory)
  }

  /** Closes what a killed process would not leave: its open ports, and active work in the store and on disk. */
  async cleanUp(): Promise<void> {
    this.#isCrashed = true
    this.#gate.close()
    await Promise.allSettled(this.#active)
  }

  #storeOf(store: Store): Store {
    const wrapped = wrappedStore(store, (operation, args) => {
      if (this.#isCrashed) return never()
      const work = () => this.#tracked(store.run(operation, args))
      return operation.access === 'write' ? this.#effect(operation.name, work) : this.#unlessCrashed(work())
    })
    return { ...wrapped, close: async () => undefined }
  }

  #tracked<Result>(work: Promise<Result>): Promise<Result> {
    this.#active.add(work)
    work.catch(() => undefined).finally(() => this.#active.delete(work))
    return work
  }

  #fleetOf(fleet: ManagementServer['fleet']): DatabasesDeps['fleet'] {
    return {
      ensure: (spec, patience) => this.#long(`engines ${spec.state}`, () => fleet.ensure(spec, patience)),
      remove: (databaseId) => this.#long('engines removed', () => this.#tracked(fleet.remove(databaseId))),
      suspend: (databaseId) => this.#long('engines stopped', () => fleet.suspend(databaseId)),
      takeSnapshot: (databaseId, file) =>
        this.#long('snapshot taken', () => this.#tracked(fleet.takeSnapshot(databaseId, file))),
      adoptSnapshot: (spec, file) =>
        this.#long('snapshot adopted', () => this.#tracked(fleet.adoptSnapshot(spec, file))),
      checkSnapshot: (file, evidence) => this.#unlessCrashed(fleet.checkSnapshot(file, evidence)),
      rewriteSnapshot: (file, into, maxMemoryBytes) =>
        this.#long('snapshot rewritten', () => this.#tracked(fleet.rewriteSnapshot(file, into, maxMemoryBytes))),
      endpoints: (databaseId, signal, patience) => this.#unlessCrashed(fleet.endpoints(databaseId, signal, patience)),
      usedBytes: (databaseId) => this.#unlessCrashed(fleet.usedBytes(databaseId)),
      collectOrphans: (known) => this.#unlessCrashed(fleet.collectOrphans(known)),
      wasWritten: (databaseId) => this.#unlessCrashed(fleet.wasWritten(databaseId)),
      compactLog: (databaseId) => this.#unlessCrashed(fleet.compactLog(databaseId)),
      save: (databaseId) => this.#unlessCrashed(fleet.save(databaseId)),
      occupancy: (databaseId) => this.#unlessCrashed(fleet.occupancy(databaseId)),
      sample: (databaseId) => this.#unlessCrashed(fleet.sample(databaseId)),
      checkSpace: () => this.#unlessCrashed(fleet.checkSpace()),
      quarantineData: (spec, reason) =>
        this.#long('data set aside', () => this.#tracked(fleet.quarantineData(spec, reason))),
      acceptLoss: (spec) => this.#long('loss accepted', () => this.#tracked(fleet.acceptLoss(spec))),
      inspectData: (spec) => this.#unlessCrashed(fleet.inspectData(spec)),
      deleteStrayMembers: (spec) => this.#unlessCrashed(fleet.deleteStrayMembers(spec)),
      observe: (databaseId) => fleet.observe(databaseId),
      replicationWith: (databaseId) => this.#unlessCrashed(fleet.replicationWith(databaseId)),
    }
  }

  /** Work with two crash points: while it runs, and after it. */
  #long<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#isCrashed) return never()
    const active = work()
    active.catch(() => undefined)
    return this.#pass(`${name} ...`) ? this.#effect(name, () => active) : never()
  }

  async #effect<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#isCrashed) return never()
    const result = await this.#unlessCrashed(work())
    return this.#pass(name) ? result : never()
  }

  async #unlessCrashed<Result>(work: Promise<Result>): Promise<Result> {
    try {
      const result = await work
      return this.#isCrashed ? never() : result
    } catch (error) {
      if (this.#isCrashed) return never()
      throw error
    }
  }

  #pass(point: CrashPoint): boolean {
    if (this.#isCrashed) return false
    this.points.push(point)
    if (this.#plan.at(point) === 'continue') return true
    this.#isCrashed = true
    this.#announceCrash()
    return false
  }
}
