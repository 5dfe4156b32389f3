import { TurnoverMap } from '../../base/index.js'
import { type ListElement, listElement } from '../protocol/outbound.js'
import type { Delivery, ListedStep, RunOfDelivery } from '../transactions/runs-read.js'
import type { DeliveryColumns } from '../transactions/runs-rows.js'

/** A longer list is read from the store each time. */
const MAX_LIST_BYTES = 256 * 1024
/** All lists together; beyond that those that have not grown for the longest time are forgotten. */
const MAX_BYTES = 32 * 2 ** 20
/** What a list and an element take besides their texts. */
const ROW_BYTES = 300

interface Known {
  readonly run: RunOfDelivery
  /** How its elements are delivered, unless they say otherwise; absent when only the store knows. */
  readonly delivery: DeliveryColumns | undefined
  readonly elements: ListElement[]
  /** The position that the next element of the run will have. */
  next: number
  bytes: number
}

/** What the request of a delivery is made of, when that is known without asking the store. */
export interface KnownDelivery {
  readonly run: RunOfDelivery
  readonly list: readonly ListElement[]
}

/**
 * The lists of runs that have just grown: what has been committed is sent without reading it again. A list is known
 * from its beginning and without a gap, or not at all; elements that join it by other ways than a submission leave a
 * gap behind, and the list is read once more. Code that ends a run while messages of it are still in the engine says so
 * here.
 */
export class RecentLists {
  /** In the order of growing. */
  readonly #lists = new TurnoverMap<number, Known>()
  readonly #seqs = new TurnoverMap<string, number>()
  #bytes = 0

  /** An id names a new run now. */
  idReused(accountId: string, runId: string): void {
    const seq = this.#seqs.get(nameOf(accountId, runId))
    if (seq !== undefined) this.#take(seq)
  }

  /** A run has begun with this element; `delivery` is how the next ones are delivered. */
  started(run: RunOfDelivery, first: ListedStep, delivery: DeliveryColumns): void {
    const element = listElement(first)
    this.#keep({ run, delivery, elements: [element], next: 1, bytes: ROW_BYTES + sizeOf(element) })
  }

  /**
   * The list of a run has an element at this position now; one that is not part of what programs replay has no `step`.
   */
  appended(runSeq: number, position: number, step?: ListedStep): void {
    const known = this.#take(runSeq)
    if (!known || known.next !== position) return
    known.next++
    if (step) {
      const element = listElement(step)
      known.elements.push(element)
      known.bytes += sizeOf(element)
    }
    this.#keep(known)
  }

  /** The store was asked for a list up to one of its steps. */
  loaded({ run, element }: Delivery, list: readonly ListElement[]): void {
    if (element.kind !== 'step' || (this.#lists.get(run.seq)?.next ?? 0) > element.position) return
    const before = this.#take(run.seq)
    const bytes = list.reduce((sum, each) => sum + sizeOf(each), ROW_BYTES)
    this.#keep({ run, delivery: before?.delivery, elements: [...list], next: element.position + 1, bytes })
  }

  /** The list of a run up to the step that this message delivers; `undefined` when the store has to be asked. */
  upTo(runSeq: number, messageId: string): KnownDelivery | undefined {
    const known = this.#lists.get(runSeq)
    const at = known?.elements.findLastIndex((element) => element.messageId === messageId) ?? -1
    return known && at >= 0 ? { run: known.run, list: known.elements.slice(0, at + 1) } : undefined
  }

  /** How the steps of a run are delivered; `undefined` when only the store knows. */
  deliveryOf(accountId: string, runId: string): DeliveryColumns | undefined {
    const seq = this.#seqs.get(nameOf(accountId, runId))
    return seq === undefined ? undefined : this.#lists.get(seq)?.delivery
  }

  /** A run has ended. */
  forget(runSeq: number): void {
    this.#take(runSeq)
  }

  #take(runSeq: number): Known | undefined {
    const known = this.#lists.get(runSeq)
    if (!known) return undefined
    this.#lists.delete(runSeq)
    this.#seqs.delete(nameOf(known.run.account_id, known.run.run_id))
    this.#bytes -= known.bytes
    return known
  }

  #keep(known: Known): void {
    if (known.bytes > MAX_LIST_BYTES) return
    this.#lists.set(known.run.seq, known)
    this.#seqs.set(nameOf(known.run.account_id, known.run.run_id), known.run.seq)
    this.#bytes += known.bytes
    for (const seq of this.#lists.keys()) {
      if (this.#bytes <= MAX_BYTES) return
      this.#take(seq)
    }
  }
}

const nameOf = (accountId: string, runId: string): string => `${accountId} ${runId}`

function sizeOf({ text }: ListElement): number {
  return text.length + ROW_BYTES
}
