import { operations } from '../store/index.js'
import { othersFirst } from './ascending.js'

/** Items of a chunk as it is stored; how many are decided in one transaction is up to the worker. */
export const CHUNK_ITEMS = 2_000
/** So many chunks are packed at a stretch, in about a millisecond. */
const CHUNKS_A_TURN = 20
/** How many items of a set are shown to whoever only looks. */
export const SAMPLE_ITEMS = 20

/** What bounds a set of runs. */
export interface Bounds {
  readonly accountId: string
  /** At most this many unfinished runs, oldest first. */
  readonly most: number | undefined
  /** The newest run that may be selected (`operations.bulkSelect.newest`). */
  readonly bound: number
  /** How many items to show. */
  readonly sample: number
}

/** A fixed set. */
export interface FixedSet {
  readonly chunks: readonly operations.bulkSelect.PackedSeqs[]
  /** Ids that name nothing. */
  readonly absent: readonly (readonly string[])[]
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
export function chunksOf(seqs: readonly number[]): operations.bulkSelect.PackedSeqs[] {
  return operations.bulkSelect.packChunks(operations.bulkSelect.ascending([...seqs]), CHUNK_ITEMS)
}

/** The same for very many numbers, which ascend already; nobody has to wait for all of them. */
export async function chunksInTurns(ascending: readonly number[]): Promise<operations.bulkSelect.PackedSeqs[]> {
  const chunks: operations.bulkSelect.PackedSeqs[] = []
  for (const part of parts(ascending, CHUNKS_A_TURN * CHUNK_ITEMS)) {
    chunks.push(...operations.bulkSelect.packChunks(part, CHUNK_ITEMS))
    await othersFirst()
  }
  return chunks
}

/** Cuts a list into parts, of the size of a chunk unless told otherwise. */
export function parts<Item>(list: readonly Item[], size = CHUNK_ITEMS): Item[][] {
  const all: Item[][] = []
  for (let start = 0; start < list.length; start += size) all.push(list.slice(start, start + size))
  return all
}
