import { yieldToEventLoop } from '../../base/index.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import * as bulkSelect from '../transactions/bulk-select.js'

/** Items of a chunk as it is stored; how many are decided in one transaction is up to the worker. */
export const CHUNK_ITEMS = 2_000
/** How many items of a set a dry run shows. */
export const SAMPLE_ITEMS = 20

/** How much of a set of runs is wanted. */
export interface Limits {
  /** At most this many unfinished runs, oldest first. */
  readonly most: number | undefined
  /** How many items to show. */
  readonly sample: number
}

/** What bounds a set of runs. */
export interface Bounds extends Limits {
  readonly accountId: string
  /** The newest run that may be selected (`bulkSelect.newest`). */
  readonly bound: number
}

/** A fixed set. */
export interface FixedSet {
  readonly chunks: readonly bulkSelect.PackedSeqs[]
  /** Ids that name nothing. */
  readonly absent: readonly bulkAction.AbsentIds[]
  /** How many of the set the action can still be done to; for ids without bounds, how many exist. */
  readonly matched: number
  /** The numbers of the first of those, as many as were asked for. */
  readonly first: readonly number[]
}

/** How many items chunks hold. */
export function itemsOf(chunks: FixedSet['chunks']): number {
  return chunks.reduce((sum, { items }) => sum + items, 0)
}

/** Packs the numbers of items, in any order, into chunks. */
export function chunksOf(seqs: readonly number[]): bulkSelect.PackedSeqs[] {
  return bulkSelect.packChunks(bulkSelect.ascending([...seqs]), CHUNK_ITEMS)
}

/** Packs ascending numbers as they come, so that a large set is never held as a whole. */
export class Packing {
  readonly #chunks: bulkSelect.PackedSeqs[] = []
  #rest: number[] = []

  /** @param seqs follow those before. */
  add(seqs: readonly number[]): void {
    for (const seq of seqs) {
      this.#rest.push(seq)
      if (this.#rest.length === CHUNK_ITEMS) this.#pack()
    }
  }

  #pack(): void {
    this.#chunks.push(...bulkSelect.packChunks(this.#rest, CHUNK_ITEMS))
    this.#rest = []
  }

  /** What came to no full chunk is the last one. */
  end(): bulkSelect.PackedSeqs[] {
    this.#pack()
    return this.#chunks
  }
}

/** So many ids are written as JSON at a stretch, in about a millisecond. */
const TURN_IDS = 16_000

/** Packs ids that name nothing. They may be a hundred thousand, of which everybody else is not to wait for the last. */
export async function packAbsent(ids: ReadonlySet<string>): Promise<bulkAction.AbsentIds[]> {
  const packed: bulkAction.AbsentIds[] = []
  let some: string[] = []
  const pack = () => packed.push({ items: some.length, ids: JSON.stringify(some) })
  for (const id of ids) {
    some.push(id)
    if (some.length < CHUNK_ITEMS) continue
    pack()
    some = []
    if ((packed.length * CHUNK_ITEMS) % TURN_IDS === 0) await yieldToEventLoop()
  }
  if (some.length > 0) pack()
  return packed
}

/** Cuts a list into batches, of the size of a chunk unless told otherwise. */
export function inBatches<Item>(list: readonly Item[], size = CHUNK_ITEMS): Item[][] {
  const all: Item[][] = []
  for (let start = 0; start < list.length; start += size) all.push(list.slice(start, start + size))
  return all
}
