import { takingPart } from '../../../cluster/transactions/cluster-nodes.js'
import { look, type Seen } from '../../../cluster/transactions/cluster-partitions.js'
import { all, type Operation, type Transaction } from '../../../store/operation.js'
import { MemoryStore } from '../../../store/testing/memory-store.js'

/** Writes that change nothing of what a look sees but the rows of nodes. */
const CHANGES_NODES_ONLY = /^(messages|queues|schedules|flow|nodes\.(beat|open|drain|register)|simulation\.declareDead)/

/**
 * The store of a simulation. Looks are half of all calls, and only the beats change all the time: so of a look only the rows of
 * nodes are read again while nothing else has changed.
 */
export class ClusterMemory extends MemoryStore {
  /** What the last whole look has seen, with all announcements. */
  #last: Seen | undefined
  readonly #quickLook: Operation<{ seen: number }, Seen> = { ...look, body: (args) => this.#lookQuickly(args) }

  override run<Args, Result>(operation: Operation<Args, Result>, args: Args): Result {
    // Safe: the quick look takes and answers the same as the look.
    if (operation.name === look.name) return super.run(this.#quickLook as unknown as Operation<Args, Result>, args)
    const result = super.run(operation, args)
    if (operation.access === 'write' && !CHANGES_NODES_ONLY.test(operation.name)) this.#last = undefined
    return result
  }

  /** The look itself, for the test that compares both. */
  wholeLook(seen: number): Seen {
    return super.run(look, { seen })
  }

  *#lookQuickly({ seen }: { seen: number }): Transaction<Seen> {
    if (!this.#last) this.#last = yield* look.body({ seen: 0 })
    else this.#last = { ...this.#last, nodes: yield* all(takingPart, {}) }
    return { ...this.#last, announcements: this.#last.announcements.filter(({ version }) => version > seen) }
  }
}
