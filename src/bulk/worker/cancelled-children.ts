import { type Clock, CoalescedTask } from '../../base/index.js'
import type { Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { BulkActionRow } from '../transactions/bulk-action.js'
import * as bulkOwner from '../transactions/bulk-owner.js'
import * as bulkUndo from '../transactions/bulk-undo.js'

/** Undos that ended longer ago are not checked again: 1 day. */
const LOOK_BACK_MS = 86_400_000
/** Runs in one transaction. */
const RUNS_AT_ONCE = 200

/** Collaborators of the reports. */
export interface CancelledChildrenDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer'>
  readonly clock: Clock
}

/**
 * Reports invoked runs that an undo has left cancelled to the runs that invoked them. An undo brings runs back that wait
 * for runs they invoked. Invoked runs that come back too report their end themselves. But the undo may end without them,
 * because it was aborted, a fence blocks them, or nothing of them was kept. Repeating a report changes nothing.
 */
export async function reportCancelledChildren(
  { store, queue, clock }: CancelledChildrenDeps,
  { seq: actionSeq }: Pick<BulkActionRow, 'seq'>,
): Promise<void> {
  for (let chunk = 0; ; ) {
    const found = await store.run(bulkOwner.succeededOf, { actionSeq, chunk })
    if (!found) return
    for (let from = 0; from < found.seqs.length; from += RUNS_AT_ONCE) {
      const seqs = found.seqs.slice(from, from + RUNS_AT_ONCE)
      queue.offer(await store.run(bulkUndo.reportLeft, { seqs, at: clock.now() }))
    }
    chunk = found.chunk + 1
  }
}

/** Finds ended undos that left runs cancelled, including those whose node died before it reported these runs. */
export class CancelledChildren {
  readonly #deps: CancelledChildrenDeps
  #reported: ReadonlySet<number> = new Set()
  #isStopped = false
  readonly #looking = new CoalescedTask(() => this.#look())

  constructor(deps: CancelledChildrenDeps) {
    this.#deps = deps
  }

  /** Reports the runs that undos have left cancelled. Never rejects: the next call repeats what failed. */
  async look(): Promise<void> {
    await this.#looking.run().catch(() => undefined)
  }

  /** Lets no new `look` begin; a running one ends after its current undo. */
  stop(): void {
    this.#isStopped = true
  }

  async #look(): Promise<void> {
    const { store, clock } = this.#deps
    const ended = await store.run(bulkUndo.endedUndos, { endedAfter: clock.now() - LOOK_BACK_MS })
    this.#reported = new Set(ended.filter((seq) => this.#reported.has(seq)))
    for (const seq of ended) {
      if (this.#isStopped || this.#reported.has(seq)) continue
      await reportCancelledChildren(this.#deps, { seq })
      this.#reported = new Set([...this.#reported, seq])
    }
  }
}
