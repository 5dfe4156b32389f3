import { type Clock, Joined } from '../../base/index.js'
import type { Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { BulkActionRow } from '../transactions/bulk-action.js'
import * as bulkOwner from '../transactions/bulk-owner.js'
import * as bulkUndo from '../transactions/bulk-undo.js'

/** Undos that ended longer ago are not looked at again: 1 day. */
const LOOK_BACK_MS = 86_400_000
/** Runs in one transaction. */
const RUNS_AT_ONCE = 200

/** What the reports need. */
export interface LeftChildrenDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer'>
  readonly clock: Clock
}

/**
 * An undo of a cancel brings runs back that wait for runs which they invoked: those that the same cancel had ended come back
 * too, and report their end themselves. If the undo ends without them, because it was aborted, or a fence blocks them, or
 * nothing was kept of them, nobody would. So their end is reported when the undo has ended. A second time changes nothing.
 */
export async function reportLeftChildren(
  { store, queue, clock }: LeftChildrenDeps,
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

/** Finds the undos that have ended and left runs cancelled, also those whose node died before it had reported them. */
export class LeftChildren {
  readonly #deps: LeftChildrenDeps
  #reported: ReadonlySet<number> = new Set()
  #isStopped = false
  readonly #looking = new Joined(() => this.#look())

  constructor(deps: LeftChildrenDeps) {
    this.#deps = deps
  }

  /** Reports what undos have left. Never rejects: what fails is done at the next look. */
  async look(): Promise<void> {
    await this.#looking.run().catch(() => undefined)
  }

  /** No look begins any more, and one that runs ends with the undo that it is at. */
  stop(): void {
    this.#isStopped = true
  }

  async #look(): Promise<void> {
    const { store, clock } = this.#deps
    const ended = await store.run(bulkUndo.endedUndos, { endedAfter: clock.now() - LOOK_BACK_MS })
    this.#reported = new Set(ended.filter((seq) => this.#reported.has(seq)))
    for (const seq of ended) {
      if (this.#isStopped || this.#reported.has(seq)) continue
      await reportLeftChildren(this.#deps, { seq })
      this.#reported = new Set([...this.#reported, seq])
    }
  }
}
