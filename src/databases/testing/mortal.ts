import { systemClock } from '../../base/index.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import type { Store } from '../../store/index.js'
import { Problems, silentLogger } from '../../telemetry/index.js'
import { createDatabases, type Databases } from '../databases.js'
import type { DatabasesDeps } from '../deps.js'
import { type House, PortGate } from './house.js'

/** A moment between two effects of a life: what has just been done, or has just been begun (`...`). */
export type CrashPoint = string

/** What happens at each point; a life that is over does and learns nothing more. */
export interface Fate {
  /** Called at every point; answers whether the life ends here. */
  readonly at: (point: CrashPoint, life: Mortal) => 'goes on' | 'ends'
}

const never = (): Promise<never> => new Promise(() => {})

/**
 * The databases of one life of the server, on the store and the fleet of a house that outlive it: all that a life
 * leaves behind is what it has committed, and its files and processes. When it ends, whatever it waits for never comes,
 * as if its process had been killed.
 */
export class Mortal {
  readonly databases: Databases
  readonly points: CrashPoint[] = []
  readonly #fate: Fate
  readonly #gate: PortGate
  readonly #active = new Set<Promise<unknown>>()
  #isOver = false
  #announceEnd = (): void => {}
  /** Resolves when the life ends. */
  readonly ended = new Promise<void>((resolve) => {
    this.#announceEnd = resolve
  })

  constructor(house: House, fate: Fate) {
    this.#fate = fate
    const { dataDir, redisPorts, accounts } = house
    this.databases = createDatabases({
      ...{ dataDir, clock: systemClock, logger: silentLogger, problems: house.problems, plans: DEFAULT_PLANS },
      store: this.#storeOf(house.store),
      fleet: this.#fleetOf(house.fleet),
      settings: {
        ...{ redisPorts, publicRedisHost: 'localhost', publicRestUrl: 'http://127.0.0.1:8701' },
        ...{ redisTlsByDefault: false, proxyTerminatesTls: false, freeAccountDatabases: 1, paidAccountDatabases: 1000 },
        ...{ awakeDatabases: 1000, usageFlushMs: 10_000, deliveryTargets: 'everything' as const },
        ...{ redisDomain: undefined, redisDomainPort: 8703 },
        ...{ acceptUnknownData: 'few' as const, quarantineMs: 7 * 86_400_000 },
      },
      problems: new Problems(systemClock, silentLogger),
      isOperator: () => true,
      traffic: { meterOf: () => undefined, release: () => true },
      emailOf: (accountId) => accounts.account(accountId)?.email ?? '',
      onServing: (databaseId) => this.#effect('port opened', () => this.#gate.open(databaseId)),
    })
    this.#gate = new PortGate(this.databases.directory)
  }

  /** Ends what a killed process would not leave: its open ports, and what is under way in the store and on disk. */
  async bury(): Promise<void> {
    this.#isOver = true
    this.#gate.close()
    await Promise.allSettled(this.#active)
  }

  #storeOf(store: Store): Store {
    return {
      describe: () => store.describe(),
      close: async () => undefined,
      run: (operation, args) => {
        if (this.#isOver) return never()
        const work = () => this.#noted(store.run(operation, args))
        return operation.access === 'write' ? this.#effect(operation.name, work) : this.#alive(work())
      },
    }
  }

  #noted<Result>(work: Promise<Result>): Promise<Result> {
    this.#active.add(work)
    work.catch(() => undefined).finally(() => this.#active.delete(work))
    return work
  }

  #fleetOf(fleet: House['fleet']): DatabasesDeps['fleet'] {
    return {
      ensure: (spec, patience) => this.#long(`engines ${spec.state}`, () => fleet.ensure(spec, patience)),
      remove: (databaseId) => this.#long('engines removed', () => this.#noted(fleet.remove(databaseId))),
      suspend: (databaseId) => this.#long('engines at rest', () => fleet.suspend(databaseId)),
      takeSnapshot: (databaseId, file) =>
        this.#long('snapshot taken', () => this.#noted(fleet.takeSnapshot(databaseId, file))),
      adoptSnapshot: (spec, file) => this.#long('snapshot adopted', () => this.#noted(fleet.adoptSnapshot(spec, file))),
      checkSnapshot: (file, evidence) => this.#alive(fleet.checkSnapshot(file, evidence)),
      rewriteSnapshot: (file, into, maxMemoryBytes) =>
        this.#long('snapshot rewritten', () => this.#noted(fleet.rewriteSnapshot(file, into, maxMemoryBytes))),
      endpoints: (databaseId, signal, patience) => this.#alive(fleet.endpoints(databaseId, signal, patience)),
      usedBytes: (databaseId) => this.#alive(fleet.usedBytes(databaseId)),
      collectOrphans: (known) => this.#alive(fleet.collectOrphans(known)),
      compactLog: (databaseId) => this.#alive(fleet.compactLog(databaseId)),
      occupancy: (databaseId) => this.#alive(fleet.occupancy(databaseId)),
      sample: (databaseId) => this.#alive(fleet.sample(databaseId)),
      checkSpace: () => this.#alive(fleet.checkSpace()),
      quarantineData: (spec, reason) =>
        this.#long('data set aside', () => this.#noted(fleet.quarantineData(spec, reason))),
      acceptLoss: (spec) => this.#long('loss accepted', () => this.#noted(fleet.acceptLoss(spec))),
      inspectData: (spec) => this.#alive(fleet.inspectData(spec)),
      deleteStrayMembers: (spec) => this.#alive(fleet.deleteStrayMembers(spec)),
      observe: (databaseId) => fleet.observe(databaseId),
    }
  }

  /** Work that takes long enough for a crash to fall into it. */
  #long<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#isOver) return never()
    const active = work()
    active.catch(() => undefined)
    return this.#pass(`${name} ...`) ? this.#effect(name, () => active) : never()
  }

  async #effect<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#isOver) return never()
    const result = await this.#alive(work())
    return this.#pass(name) ? result : never()
  }

  async #alive<Result>(work: Promise<Result>): Promise<Result> {
    try {
      const result = await work
      return this.#isOver ? never() : result
    } catch (error) {
      if (this.#isOver) return never()
      throw error
    }
  }

  #pass(point: CrashPoint): boolean {
    if (this.#isOver) return false
    this.points.push(point)
    if (this.#fate.at(point, this) === 'goes on') return true
    this.#isOver = true
    this.#announceEnd()
    return false
  }
}
