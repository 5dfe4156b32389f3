import { TurnoverMap } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { StoreMeter } from '../../telemetry/index.js'
import type { AnyOperation, Operation } from '../operation.js'
import type { Store, StoreDescription, StoreSharing, StoreWatch } from '../types.js'
import { type AnyCarrying, CallCombiner, type CarriedCalls } from './combined-calls.js'
import type { Connections } from './connections.js'
import { toStoreError } from './errors.js'
import { IncarnationLock } from './incarnation-lock.js'
import { RecentCalls } from './recent-calls.js'
import { Retries } from './retries.js'
import { RowTypes } from './rows.js'
import { start } from './start.js'
import { runTransaction } from './transaction.js'

/**
 * Opens the store in a PostgreSQL database and migrates its schema.
 * @param url `postgres://user:password@host:port/database`, or with several hosts; never logged, never part of an error.
 * @param watch `onFailure` is called when another node has taken the database.
 * @param sharing whether other nodes may use it too.
 * @throws HomeportError `store_in_use`, `nodes_too_old`, `store_newer`, `store_clock_differs` or `store_not_opened`.
 */
export async function openPostgresStore(url: string, watch: StoreWatch, sharing: StoreSharing): Promise<Store> {
  const { connections, durability } = await start(url, watch, sharing)
  return new PostgresStore(connections, { ...watch, durability })
}

/**
 * Runs each operation as a transaction on a pooled connection, or combines many calls of one operation if its declaration
 * allows that.
 */
class PostgresStore implements Store {
  readonly #connections: Connections
  readonly #retries = new Retries()
  readonly #durability: string
  readonly #onDamage: StoreWatch['onDamage']
  readonly #onFull: () => void
  readonly #meter: StoreMeter
  readonly #rowTypes = new RowTypes()
  readonly #combiner = new CallCombiner((operation, args) => this.#run(operation, args))
  readonly #running = new TurnoverMap<Promise<unknown>, true>()
  readonly #others = new RecentCalls()
  readonly #incarnation = new IncarnationLock()
  #closing: Promise<void> | undefined
  readonly #lostCommit = new Set<() => void>()

  constructor(connections: Connections, more: Omit<StoreWatch, 'onFailure' | 'onClock'> & { durability: string }) {
    this.#connections = connections
    this.#durability = more.durability
    this.#onDamage = more.onDamage
    this.#onFull = more.onFull ?? (() => undefined)
    this.#meter = more.meter ?? new StoreMeter()
    connections.onOtherServer(() => this.#mayHaveLost())
  }

  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result> {
    if (this.#closing) return Promise.reject(new HomeportError('starting', {}))
    // Safe: the result comes from this operation.
    const result = this.#metered(operation as AnyOperation, args) as Promise<Result>
    this.#running.set(result, true)
    if (operation.turn !== 'background') this.#others.note(performance.now())
    const done = (): void => void this.#running.delete(result)
    result.then(done, done)
    return result
  }

  async #metered(operation: AnyOperation, args: unknown): Promise<unknown> {
    const meter = this.#meter[operation.access]
    const startedMs = performance.now()
    meter.pending++
    try {
      const { combining } = operation
      const isCombined = combining && !combining.except?.(args as never)
      return await (isCombined ? this.#combiner.call(operation, combining, args) : this.#run(operation, args))
    } catch (error) {
      meter.failed++
      if (isError(error, 'store_outcome_unknown')) this.#mayHaveLost()
      throw error
    } finally {
      meter.ended(startedMs, performance.now())
    }
  }

  #mayHaveLost(): void {
    for (const listener of this.#lostCommit) listener()
  }

  #run(operation: AnyOperation, args: unknown): Promise<unknown> {
    const { carrying } = operation
    const carried = carrying && this.#combiner.takeAlong(carrying)
    return carrying && carried ? this.#runCarrying(operation, args, carrying, carried) : this.#runAlone(operation, args)
  }

  /** Runs an operation that carries delayed calls of another one; the calls that it does not make run separately. */
  async #runCarrying(operation: AnyOperation, args: unknown, carrying: AnyCarrying, carried: CarriedCalls) {
    let made: readonly boolean[] = []
    try {
      const result = await this.#runAlone(operation, carrying.load(args as never, carried.args))
      made = carrying.made(result as never, carried.args)
      return result
    } finally {
      carried.settle((index) => made[index] === true)
    }
  }

  async #runAlone(operation: AnyOperation, args: unknown): Promise<unknown> {
    const { shortcut } = operation
    const result = shortcut?.fits(args as never) ? await this.#transact(shortcut.operation, args) : undefined
    return result === undefined ? await this.#transact(operation, args) : result
  }

  async #transact(operation: AnyOperation, args: unknown): Promise<unknown> {
    try {
      return await this.#retries.run(operation.name, () => this.#runOnce(operation, args))
    } catch (error) {
      if (this.#rowTypes.forgetIfStale(error)) return await this.#transact(operation, args)
      throw this.#failure(error, operation)
    }
  }

  #failure(error: unknown, { name }: AnyOperation): Error {
    const failure = toStoreError(error, name)
    if (isError(failure, 'store_damaged')) this.#onDamage(failure.details)
    if (isError(failure, 'store_full')) this.#onFull()
    return failure
  }

  #runOnce(operation: AnyOperation, args: unknown): Promise<unknown> {
    return this.#connections.use((client) => {
      const run = (): Promise<unknown> =>
        runTransaction({ client, rowTypes: this.#rowTypes, onDamage: this.#onDamage }, operation, args)
      return this.#incarnation.isMarked(client) ? run() : this.#incarnation.mark(client).then(run)
    })
  }

  actFor(incarnation: number): void {
    this.#incarnation.begin(incarnation)
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#running.keys())
  }

  onLostCommit(listener: () => void): () => void {
    this.#lostCommit.add(listener)
    return () => void this.#lostCommit.delete(listener)
  }

  isUsedByOthers(): boolean {
    return this.#others.areMany(performance.now())
  }

  describe(): StoreDescription {
    return { kind: 'postgres', durability: this.#durability }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Waits for all operations first, because those that wait for a connection are dropped when the connections close. */
  async #close(): Promise<void> {
    this.#combiner.flush()
    await Promise.allSettled(this.#running.keys())
    await this.#connections.close()
  }
}
