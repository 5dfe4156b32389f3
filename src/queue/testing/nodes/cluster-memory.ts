import { takingPart } from '../../../cluster/transactions/cluster-nodes.js'
import { look, type Seen } from '../../../cluster/transactions/cluster-partitions.js'
import type { Operation } from '../../../store/operation.js'
import { all, type Transaction } from '../../../store/statement.js'
import { MemoryStore } from '../../../store/testing/memory-store.js'

/** Writes that change no rows that a look reads. */
const CHANGES_NOTHING = /^(messages|queues|schedules|flow|runs|bulk)/
/** Writes that, of the rows that a look reads, change only those of nodes. */
const CHANGES_NODES_ONLY = /^nodes\.(beat|open|drain|register)/

/**
 * The store of a simulation. Looks are the most frequent calls, and mostly only the beats change. So a look reads only the
 * rows that may have changed since the last one.
 */
export class ClusterMemory extends MemoryStore {
  /** The result of the last look, with all announcements. */
  #last: Seen | undefined
  #haveNodesChanged = false
  readonly #quickLook: Operation<{ seen: number }, Seen> = { ...look, body: (args) => this.#lookQuickly(args) }

  override run<Args, Result>(operation: Operation<Args, Result>, args: Args): Result {
    // Safe: the quick look has the same arguments and result as the look.
    if (operation.name === look.name) return super.run(this.#quickLook as unknown as Operation<Args, Result>, args)
    const result = super.run(operation, args)
    if (operation.access === 'read' || CHANGES_NOTHING.test(operation.name)) return result
    if (CHANGES_NODES_ONLY.test(operation.name)) this.#haveNodesChanged = true
    else this.#last = undefined
    return result
  }

  override goBack(): void {
    super.goBack()
    this.#last = undefined
  }

  /** The look itself, for the test that compares both. */
  wholeLook(seen: number): Seen {
    return super.run(look, { seen })
  }

  *#lookQuickly({ seen }: { seen: number }): Transaction<Seen> {
    if (!this.#last) this.#last = yield* look.body({ seen: 0 })
    else if (this.#haveNodesChanged) this.#last = { ...this.#last, nodes: yield* all(takingPart, {}) }
    this.#haveNodesChanged = false
    return { ...this.#last, announcements: this.#last.announcements.filter(({ version }) => version > seen) }
  }
}
