import { isError } from '../../contract/errors/errors.js'
import { type AnyCombining, Gathering } from '../combining.js'
import { type AnyOperation, operationNamed } from '../operation.js'

/** Which calls an operation carries, for any types. */
export type AnyCarrying = NonNullable<AnyOperation['carrying']>

/** Runs an operation as a separate transaction. */
export type RunAlone = (operation: AnyOperation, args: unknown) => Promise<unknown>

/** Combined calls of an operation that run at once: one fills while the other waits for the disk. */
const MAX_AT_ONCE = 2
/** Calls in one transaction: the first waits for the last. */
const MAX_CALLS = 500
/** Rows in one transaction, except for a call that has more: a transaction of more rows is not cheaper for each. */
const MAX_ROWS = 1_000
/** Bytes of contents in one transaction. */
const MAX_BYTES = 8 * 2 ** 20
/** Calls of a refused combined call that are repeated at the same time. */
const SEPARATE_AT_ONCE = 4
/** Errors that no single call causes, so the calls are not repeated one by one. */
const NOT_ITS_OWN = ['store_outcome_unknown', 'store_unavailable', 'store_in_use', 'starting'] as const

interface Member {
  readonly args: unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Calls that the transaction of another call makes too. */
export interface CarriedCalls {
  readonly args: readonly unknown[]
  /** Resolves the calls that were made; the others are made separately now. */
  settle(isMade: (index: number) => boolean): void
}

/**
 * Combines calls of one operation: those of a tick, and all that arrive while others are running. If a combined call is
 * refused, its calls are repeated one by one, because one of them may be the reason. If the outcome is unknown, each caller
 * gets that error: the transaction may have been committed.
 */
export class CombinedCalls {
  readonly #operation: AnyOperation
  readonly #combining: AnyCombining
  readonly #run: RunAlone
  readonly #onIdle: () => void
  readonly #gathering = new Gathering<Member>(() => this.#onDue())
  #running = 0
  /** Whether the gathered calls are due, and wait only until a running call has ended. */
  #isDue = false

  /** @param onIdle called when all calls so far are over. */
  constructor(operation: AnyOperation, combining: AnyCombining, run: RunAlone, onIdle: () => void = () => undefined) {
    this.#operation = operation
    this.#combining = combining
    this.#run = run
    this.#onIdle = onIdle
  }

  call(args: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#gathering.add({ args, resolve, reject }, this.#operation.maxDelayMs ?? 0)
      if (this.#gathering.size >= MAX_CALLS) this.#gathering.dueSoon()
    })
  }

  /** Runs the gathered calls without further delay. */
  flush(): void {
    this.#onDue()
  }

  /** Takes delayed calls, for a transaction of another call that makes them too; `undefined` if there are none. */
  takeAlong(most: number): CarriedCalls | undefined {
    const members = this.#gathering.take(most)
    if (members.length === 0) return undefined
    const settle = (isMade: (index: number) => boolean): void => {
      for (const [index, member] of members.entries()) {
        if (isMade(index)) member.resolve(undefined)
        else this.#gathering.add(member, 0)
      }
    }
    return { args: members.map(({ args }) => args), settle }
  }

  #onDue(): void {
    this.#isDue = true
    while (this.#isDue && this.#running < MAX_AT_ONCE) {
      void this.#runGathered(this.#takeSome())
      this.#isDue = this.#gathering.size > 0
    }
  }

  /** As many as fit, except those that share a key with an earlier one. */
  #takeSome(): Member[] {
    const { bytesOf = () => 0, rowsOf = () => 1, keysOf = () => [] } = this.#combining
    const keys = new Set<string>()
    let calls = 0
    let rows = 0
    let bytes = 0
    return this.#gathering.takeWhere(({ args }) => {
      const own = keysOf(args as never)
      const size = bytesOf(args as never)
      const count = rowsOf(args as never)
      const fits = calls < MAX_CALLS && (calls === 0 || (rows + count <= MAX_ROWS && bytes + size <= MAX_BYTES))
      const isTaken = fits && !own.some((key) => keys.has(key))
      // A call that is left keeps its place: later calls with the same key must not overtake it.
      for (const key of own) keys.add(key)
      if (!isTaken) return false
      calls++
      rows += count
      bytes += size
      return true
    })
  }

  /** Never rejects. */
  async #runGathered(members: readonly Member[]): Promise<void> {
    if (members.length === 0) return
    this.#running++
    try {
      const [first] = members
      if (first && members.length === 1) await this.#runOne(first)
      else await this.#runTogether(members)
    } finally {
      this.#running--
      if (this.#isDue) this.#onDue()
      if (this.#running === 0 && this.#gathering.size === 0) this.#onIdle()
    }
  }

  async #runTogether(members: readonly Member[]): Promise<void> {
    const { split } = this.#combining
    const { operation, join } = this.#combining.here ?? this.#combining
    const all = members.map(({ args }) => args) as never[]
    try {
      const results = split(await this.#run(operationNamed(operation.name), join(all)), all)
      for (const [index, { resolve }] of members.entries()) resolve(results[index])
    } catch (error) {
      if (NOT_ITS_OWN.some((code) => isError(error, code))) for (const { reject } of members) reject(error)
      else await this.#runEach(members)
    }
  }

  /** Repeats the calls one by one, a few at the same time, so that they neither take long nor use all connections. */
  async #runEach(members: readonly Member[]): Promise<void> {
    const left = members.values()
    const runNext = async (): Promise<void> => {
      for (const member of left) await this.#runOne(member)
    }
    await Promise.all(Array.from({ length: Math.min(members.length, SEPARATE_AT_ONCE) }, runNext))
  }

  #runOne({ args, resolve, reject }: Member): Promise<void> {
    return this.#run(this.#operation, args).then(resolve, reject)
  }
}

/**
 * The combined calls of all operations. Calls that yield a single statement are combined separately, so that they never
 * wait for the locks of other calls.
 */
export class CallCombiner {
  readonly #run: RunAlone
  readonly #single = new Map<AnyOperation, CombinedCalls>()
  readonly #others = new Map<AnyOperation, CombinedCalls>()
  /** Calls of operations with groups, by operation and group; a group without calls is removed. */
  readonly #groups = new Map<string, CombinedCalls>()

  constructor(run: RunAlone) {
    this.#run = run
  }

  call(operation: AnyOperation, combining: AnyCombining, args: unknown): Promise<unknown> {
    const group = combining.groupOf?.(args as never)
    if (group !== undefined) return this.#ofGroup(operation, combining, group).call(args)
    const calls = operation.isSingle?.(args as never) ? this.#single : this.#others
    let combined = calls.get(operation)
    if (!combined) {
      combined = new CombinedCalls(operation, combining, this.#run)
      calls.set(operation, combined)
    }
    return combined.call(args)
  }

  /** See `CombinedCalls.takeAlong`; only calls of a single statement. */
  takeAlong({ operation, most }: Pick<AnyCarrying, 'operation' | 'most'>): CarriedCalls | undefined {
    return this.#single.get(operationNamed(operation.name))?.takeAlong(most)
  }

  #ofGroup(operation: AnyOperation, combining: AnyCombining, group: string): CombinedCalls {
    const name = `${operation.name} ${group}`
    const known = this.#groups.get(name)
    if (known) return known
    const combined = new CombinedCalls(operation, combining, this.#run, () => this.#groups.delete(name))
    this.#groups.set(name, combined)
    return combined
  }

  /** Runs all gathered calls without further delay. */
  flush(): void {
    for (const calls of [this.#single, this.#others, this.#groups]) for (const one of calls.values()) one.flush()
  }
}
