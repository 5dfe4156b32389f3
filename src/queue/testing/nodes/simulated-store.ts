import * as partitionRows from '../../../cluster/transactions/cluster-partitions.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import type { Store } from '../../../store/index.js'
import type { Operation } from '../../../store/operation.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import type { Effects } from './effects.js'
import { type Fate, type Network, SLOW_MS } from './network.js'
import type { Process, Timeline } from './timeline.js'

/** Replaces an operation by another one with the same arguments and result, or does something before it. */
export type Replace = (
  operation: Pick<Operation<never, unknown>, 'name'>,
  args: unknown,
) => Pick<Operation<never, unknown>, 'name'>

/** What the store of a process is built from. */
export interface SimulatedStoreDeps {
  readonly timeline: Timeline
  readonly process: Process
  readonly memory: MemoryStore
  readonly network: Network
  readonly effects: Effects
  /** Whether the incarnation of the process is over in the store. */
  readonly isDeclaredDead: () => boolean
  /** Default: every operation as it is. */
  readonly replace?: Replace | undefined
}

/** The store as one process reaches it: calls take time, fail, and lose their replies. */
export class SimulatedStore implements Store {
  readonly #deps: SimulatedStoreDeps
  readonly #listeners = new Set<() => void>()
  readonly #running = new Set<Promise<unknown>>()
  #isBound = false
  /** The server of the last connection. */
  #server: number | undefined

  constructor(deps: SimulatedStoreDeps) {
    this.#deps = deps
  }

  run<Args, Result>(given: Operation<Args, Result>, args: Args): Promise<Result> {
    const { process, network, replace } = this.#deps
    const replacement = replace?.(given, args) ?? given
    // Safe: a replacement has the same arguments and result.
    const operation = replacement === given ? given : { ...(replacement as Operation<Args, Result>), name: given.name }
    const mayBeLate = given.isSingle?.(args) === true || given.name === partitionRows.give.name
    const fate = network.toStore(process, operation.access === 'write', mayBeLate)
    // The transaction of a process that has ended is rolled back, unless all its statements are already sent.
    const { storeServer } = network
    const isUndone = (): boolean => (process.isOver && !mayBeLate) || network.storeServer !== storeServer
    const apply = () =>
      isUndone() ? { error: new HomeportError('store_unavailable', {}) } : this.#apply(operation, args)
    const call = new Promise<Result>((resolve, reject) =>
      this.#follow(fate, operation.name, apply, { resolve, reject }),
    )
    const ended: Promise<unknown> = call.then(
      () => this.#running.delete(ended),
      () => this.#running.delete(ended),
    )
    this.#running.add(ended)
    return call
  }

  #follow<Result>(
    fate: Fate,
    name: string,
    apply: () => { value: Result } | { error: unknown },
    { resolve, reject }: { resolve: (result: Result) => void; reject: (error: unknown) => void },
  ): void {
    const { timeline, process, network } = this.#deps
    const { storeServer } = network
    if (fate.kind !== 'ok') {
      process.disturb()
      if (fate.kind === 'unanswered' && fate.effect !== undefined) {
        timeline.note(`${process.name}: ${name} loses its answer`)
        timeline.after(fate.effect, () => void apply())
      }
      timeline.after(fate.heard, () => reject(this.#lost(fate)), process)
      return
    }
    // Other calls may wait for this one, because loads run one after the other.
    if (fate.there + fate.back > SLOW_MS) process.disturb(fate.there + fate.back)
    timeline.after(fate.there, () => {
      const outcome = network.isStoreAway(process) ? { error: new HomeportError('store_unavailable', {}) } : apply()
      const answer = (): void => {
        if (fate.there + fate.back > SLOW_MS || 'error' in outcome) process.disturb()
        if ('error' in outcome) reject(outcome.error)
        else {
          this.#meet(storeServer)
          resolve(outcome.value)
        }
      }
      timeline.after(fate.back, answer, process)
    })
  }

  #lost(fate: Fate): HomeportError {
    this.#deps.process.disturb()
    if (fate.kind !== 'unanswered') return new HomeportError('store_unavailable', {})
    this.#notifyLost()
    return new HomeportError('store_outcome_unknown', {})
  }

  #notifyLost(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Notes the server of a reply. Another server may lack commits of the one before. */
  #meet(server: number): void {
    const isOther = this.#server !== undefined && server !== this.#server
    this.#server = server
    if (isOther) this.#notifyLost()
  }

  #apply<Args, Result>(operation: Operation<Args, Result>, args: Args): { value: Result } | { error: unknown } {
    const { memory, effects, isDeclaredDead } = this.#deps
    if (this.#isBound && isDeclaredDead()) return { error: new HomeportError('store_unavailable', {}) }
    try {
      const value = memory.run(operation, args)
      effects.happened(operation, args, value)
      return { value }
    } catch (error) {
      return { error }
    }
  }

  actFor(): void {
    this.#isBound = true
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }

  onLostCommit(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  describe() {
    return { kind: 'postgres', durability: 'none' } as const
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
