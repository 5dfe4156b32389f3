import { charactersIn, yieldToEventLoop } from '../../base/index.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import * as bulkSelect from '../transactions/bulk-select.js'

/** Items of a stored chunk. The worker decides how many of them make a batch. */
export const CHUNK_ITEMS = 2_000
/** Items that a dry run shows. */
export const SAMPLE_ITEMS = 20

/** Limits of a set of runs. */
export interface Limits {
  /** Maximum number of active runs, oldest first. */
  readonly most: number | undefined
  /** Number of items to preview. */
  readonly sample: number
}

/** Bounds of a set of runs. */
export interface Bounds extends Limits {
  readonly accountId: string
  /** Newest run that may be selected (`bulkSelect.newest`). */
  readonly bound: number
}

/** The fixed set of an action. */
export interface FixedSet {
  readonly chunks: readonly bulkSelect.PackedSeqs[]
  /** Ids that match nothing. */
  readonly absent: readonly bulkAction.AbsentIds[]
  /** Items the action can still be applied to; for ids without limits, the items that exist. */
  readonly matched: number
  /** Numbers of the first matched items, up to the preview limit. */
  readonly first: readonly number[]
  /** Items that do not match because their payload or failure could not be read. Absent if all could be read. */
  readonly unreadable?: number
}

/** Total items of chunks. */
export function itemsOf(chunks: FixedSet['chunks']): number {
  return chunks.reduce((sum, { items }) => sum + items, 0)
}

/** Packs numbers in any order into chunks. */
export function chunksOf(seqs: readonly number[]): bulkSelect.PackedSeqs[] {
  return bulkSelect.packChunks(bulkSelect.ascending([...seqs]), CHUNK_ITEMS)
}

/** Packs a stream of ascending numbers, so a large set is never in memory as a whole. */
export class ChunkPacker {
  readonly #chunks: bulkSelect.PackedSeqs[] = []
  #rest: number[] = []

  /** @param seqs larger than all numbers before. */
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

  /** Packs the remainder as the last chunk. @returns all chunks. */
  end(): bulkSelect.PackedSeqs[] {
    this.#pack()
    return this.#chunks
  }
}

/** Characters of ids to serialize before yielding to the event loop, about one millisecond. */
const CHARACTERS_PER_SLICE = 524_288

/** Packs ids that match nothing. Yields between slices, because there may be a hundred thousand. */
export async function packAbsent(ids: ReadonlySet<string>): Promise<bulkAction.AbsentIds[]> {
  const packed: bulkAction.AbsentIds[] = []
  let sinceYield = 0
  for (const some of idsInBatches([...ids], CHUNK_ITEMS)) {
    packed.push({ items: some.length, ids: JSON.stringify(some) })
    sinceYield += charactersIn(some)
    if (sinceYield < CHARACTERS_PER_SLICE) continue
    await yieldToEventLoop()
    sinceYield = 0
  }
  return packed
}

/** Cuts a list into batches, by default of the size of a chunk. */
export function inBatches<Item>(list: readonly Item[], size = CHUNK_ITEMS): Item[][] {
  const all: Item[][] = []
  for (let start = 0; start < list.length; start += size) all.push(list.slice(start, start + size))
  return all
}

/** Maximum characters of the ids of a batch: thousands of ids of usual length. An id may be three hundred times as long. */
const BATCH_CHARACTERS = 262_144

/** Cuts ids into batches of at most `most`, fewer where they are long. */
export function* idsInBatches(ids: readonly string[], most: number): Generator<string[]> {
  let [start, characters] = [0, 0]
  for (const [at, { length }] of ids.entries()) {
    if (at > start && (at - start === most || characters + length > BATCH_CHARACTERS)) {
      yield ids.slice(start, at)
      start = at
      characters = 0
    }
    characters += length
  }
  if (start < ids.length) yield ids.slice(start)
}
