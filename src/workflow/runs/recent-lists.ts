import { TurnoverMap } from '../../base/index.js'
import type { Outbound } from '../../queue/index.js'
import { type ListElement, listElement } from '../protocol/outbound.js'
import type { Delivery, ListedStep, RunOfDelivery } from '../transactions/runs-read.js'
import type { DeliveryColumns } from '../transactions/runs-rows.js'

/** Longer lists are not cached. */
const MAX_LIST_BYTES = 256 * 1024
/** Limit of all lists together; beyond it the list that grew longest ago is evicted. */
const MAX_BYTES = 32 * 2 ** 20
/** Overhead of a list and of an element. */
const ROW_BYTES = 300
/** No request is built ahead for longer lists. */
const MAX_AHEAD_BYTES = 32 * 1024

/** A request that was built before its element was committed. It is valid only if the element gets this place. */
export interface RequestAhead {
  readonly messageId: string
  /** `runs.seq`; `undefined` for the first element of a run. */
  readonly runSeq: number | undefined
  readonly position: number
  readonly outbound: Outbound
}

interface Known {
  readonly run: RunOfDelivery
  /** Default delivery settings of its elements; absent when only the store knows them. */
  readonly delivery: DeliveryColumns | undefined
  readonly elements: ListElement[]
  /** Position of the next element of the run. */
  next: number
  bytes: number
  /** The request for its last element, until that is sent. */
  ahead: RequestAhead | undefined
}

/** A run and its list, from memory. */
export interface KnownDelivery {
  readonly run: RunOfDelivery
  readonly list: readonly ListElement[]
  /** The request that was built ahead. */
  readonly outbound?: Outbound | undefined
}

/** The expected list after the commit, if the store gives its new last element this place. */
export interface Upcoming extends KnownDelivery, Pick<RequestAhead, 'runSeq' | 'position'> {}

/**
 * Cache of the lists that have grown lately, so that a committed element is sent without reading the list again. A list
 * is cached whole, from position 0 and without gaps, or not at all. Only submissions add to the cache: an element that a
 * run gets in another way leaves a gap, and the list is read from the store again. Code that ends a run while the
 * dispatcher still holds messages of the run must call `forget`.
 */
export class RecentLists {
  /** Least recently grown first. */
  readonly #lists = new TurnoverMap<number, Known>()
  readonly #seqs = new TurnoverMap<string, number>()
  #bytes = 0

  /** Drops the list of an older run with the same id. */
  idReused(accountId: string, runId: string): void {
    const seq = this.#seqs.get(nameOf(accountId, runId))
    if (seq !== undefined) this.#remove(seq)
  }

  /** The list of a run with one more step, which is not committed yet; `undefined` if the list is not cached, or long. */
  withNext(runSeq: number | undefined, step: ListedStep): Upcoming | undefined {
    const known = runSeq === undefined ? undefined : this.#lists.get(runSeq)
    if (!known || known.bytes + step.body.byteLength > MAX_AHEAD_BYTES) return undefined
    return { run: known.run, runSeq, position: known.next, list: [...known.elements, listElement(step)] }
  }

  /** The list of a run that is about to start; `undefined` if it is long. */
  ofStart(run: RunOfDelivery, first: ListedStep): Upcoming | undefined {
    if (first.body.byteLength > MAX_AHEAD_BYTES) return undefined
    return { run, runSeq: undefined, position: 0, list: [listElement(first)] }
  }

  /** Adds a new run with its first element; `delivery` holds the settings of the next deliveries. */
  started(run: RunOfDelivery, first: ListedStep, delivery: DeliveryColumns, ahead?: RequestAhead): void {
    const element = listElement(first)
    const known = { run, delivery, elements: [element], next: 1, bytes: ROW_BYTES + sizeOf(element), ahead: undefined }
    putAhead(known, 0, ahead)
    this.#keep(known)
  }

  /** Adds the element at this position; without `step`, an element that programs do not replay. */
  appended(runSeq: number, position: number, step?: ListedStep, ahead?: RequestAhead): void {
    const known = this.#remove(runSeq)
    if (!known || known.next !== position) return
    known.next++
    if (step) {
      const element = listElement(step)
      known.elements.push(element)
      known.bytes += sizeOf(element)
    }
    putAhead(known, position, ahead)
    this.#keep(known)
  }

  /** Caches a list that was read from the store, up to one of its steps. An empty list was too large to be read. */
  loaded({ run, element }: Delivery, list: readonly ListElement[]): void {
    if (list.length === 0 || (this.#lists.get(run.seq)?.next ?? 0) > element.position) return
    const before = this.#remove(run.seq)
    const bytes = list.reduce((sum, each) => sum + sizeOf(each), ROW_BYTES)
    const next = element.position + 1
    this.#keep({ run, delivery: before?.delivery, elements: [...list], next, bytes, ahead: undefined })
  }

  /** The list of a run up to the step that this message delivers; `undefined` if it is not cached. */
  upTo(runSeq: number, messageId: string): KnownDelivery | undefined {
    const known = this.#lists.get(runSeq)
    const at = known?.elements.findLastIndex((element) => element.messageId === messageId) ?? -1
    if (!known || at < 0) return undefined
    return { run: known.run, list: known.elements.slice(0, at + 1), outbound: this.#takeAhead(known, messageId) }
  }

  #takeAhead(known: Known, messageId: string): Outbound | undefined {
    if (known.ahead?.messageId !== messageId) return undefined
    const { outbound } = known.ahead
    this.#bytes -= known.bytes
    putAhead(known)
    this.#bytes += known.bytes
    return outbound
  }

  /** The delivery settings of a run with the number they belong to; `undefined` if they are not cached. */
  deliveryOf(accountId: string, runId: string): { delivery: DeliveryColumns; deliveryOf: number } | undefined {
    const seq = this.#seqs.get(nameOf(accountId, runId))
    const delivery = seq === undefined ? undefined : this.#lists.get(seq)?.delivery
    return delivery && seq !== undefined ? { delivery, deliveryOf: seq } : undefined
  }

  /** Drops the list of a run that has ended. */
  forget(runSeq: number): void {
    this.#remove(runSeq)
  }

  /** Drops all lists: a lost commit may have changed or ended any run. */
  clear(): void {
    this.#lists.clear()
    this.#seqs.clear()
    this.#bytes = 0
  }

  #remove(runSeq: number): Known | undefined {
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
      this.#remove(seq)
    }
  }
}

/** Replaces the request of the last element, if it was built for the place that the element got. */
function putAhead(known: Known, position?: number, ahead?: RequestAhead): void {
  known.bytes -= bytesOf(known.ahead)
  const isRight = ahead?.position === position && (ahead?.runSeq ?? known.run.seq) === known.run.seq
  known.ahead = isRight ? ahead : undefined
  known.bytes += bytesOf(known.ahead)
}

/** Callers choose how long their headers are, so these count, too. */
function bytesOf(ahead: RequestAhead | undefined): number {
  if (!ahead) return 0
  const { body, ahead: signed } = ahead.outbound
  return (signed?.headers ?? []).reduce((sum, text) => sum + text.length, body?.byteLength ?? 0)
}

const nameOf = (accountId: string, runId: string): string => `${accountId} ${runId}`

function sizeOf({ text }: ListElement): number {
  return text.length + ROW_BYTES
}
