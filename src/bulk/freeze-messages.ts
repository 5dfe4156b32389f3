import { operations, type Store } from '../store/index.js'
import { FIRST_DUE, type PendingPage, type PendingSelector } from '../store/operations/messages-cancel.js'
import type { DeadSelector } from '../store/operations/messages-dead.js'
import { ANY_MESSAGE, type MessageFilter } from '../store/operations/messages-filter.js'
import type { DeadRunFilter, DeadRunPlace, DeadRunSelector } from '../store/operations/runs.js'
import { chunksOf, type FixedSet, itemsOf, parts } from './fixed-set.js'

/** Messages that are looked up at once. */
export const PAGE_ITEMS = 1_000
/** The kind of the queue's own messages. */
const PLAIN = 'http'

/** What bounds a set of messages or dead letters. */
export interface Bounds {
  readonly accountId: string
  /** At most this many items, in the order of their kind. */
  readonly most: number | undefined
  /** When the request arrived, Unix milliseconds. */
  readonly at: number
}

const setOf = (chunks: FixedSet['chunks'], absent: FixedSet['absent'] = []): FixedSet => ({
  chunks,
  absent,
  matched: itemsOf(chunks),
  sample: [],
})

/**
 * Selects messages that wait for delivery. Those that wait for their turn in a queue come first: were the ones before
 * them cancelled first, their turns would come in the middle of it.
 */
export async function fixMessages(store: Store, bounds: Bounds, filter: MessageFilter): Promise<FixedSet> {
  if (filter.messageIds.length > 0) return fixNamedMessages(store, bounds, filter.messageIds)
  const held = await pendingChunks(store, bounds, filter, 'held')
  const most = bounds.most === undefined ? undefined : bounds.most - setOf(held).matched
  return setOf([...held, ...(await pendingChunks(store, { ...bounds, most }, filter, 'pending'))])
}

async function pendingChunks(
  store: Store,
  { accountId, most = Number.POSITIVE_INFINITY, at: createdUpTo }: Bounds,
  filter: MessageFilter,
  state: PendingSelector['state'],
): Promise<FixedSet['chunks'][number][]> {
  const chunks: FixedSet['chunks'][number][] = []
  let after: PendingPage['next'] = FIRST_DUE
  let left = most
  while (after && left > 0) {
    const limit = Math.min(PAGE_ITEMS, left)
    const selector: PendingSelector = { accountId, kind: PLAIN, state, filter, createdUpTo, after, limit }
    const { places, next }: PendingPage = await store.run(operations.messagesCancel.selectPending, selector)
    chunks.push(...chunksOf(places.map((place) => place.seq)))
    left -= places.length
    after = next
  }
  return chunks
}

async function fixNamedMessages(store: Store, { accountId }: Bounds, ids: readonly string[]): Promise<FixedSet> {
  const seqs: number[] = []
  const known = new Set<string>()
  for (const part of parts(ids, PAGE_ITEMS)) {
    for (const row of await store.run(operations.bulkSelect.selectNamedMessages, {
      accountId,
      kind: PLAIN,
      ids: part,
    })) {
      seqs.push(row.seq)
      known.add(row.message_id)
    }
  }
  return setOf(chunksOf(seqs), parts(ids.filter((id) => !known.has(id))))
}

/** Selects dead letters of messages: those with these ids, else those that pass the filter. */
export async function fixDeadLetters(
  store: Store,
  bounds: Bounds,
  filter: MessageFilter,
  dlqIds: readonly string[] | undefined,
): Promise<FixedSet> {
  const { accountId } = bounds
  const shared = { accountId, kind: PLAIN, order: 'earliestFirst' as const, limit: PAGE_ITEMS }
  if (dlqIds) {
    const read = async (part: readonly string[]) => {
      const selector: DeadSelector = { ...shared, dlqIds: part, filter: ANY_MESSAGE, after: undefined }
      return (await store.run(operations.messagesDead.deadLetters, selector)).letters
    }
    return fixLetterIds(dlqIds, read)
  }
  const upToNow = { ...filter, toDate: Math.min(filter.toDate ?? bounds.at, bounds.at) }
  return walk<string>(bounds.most, async (after, limit) => {
    const selector: DeadSelector = { ...shared, dlqIds: undefined, filter: upToNow, after, limit }
    const { seqs, cursor: next } = await store.run(operations.messagesDead.deadSeqs, selector)
    return { seqs, next }
  })
}

/** Selects dead letters of runs. */
export async function fixDeadRuns(store: Store, bounds: Bounds, filter: DeadRunFilter): Promise<FixedSet> {
  const shared = { accountId: bounds.accountId, order: 'earliestFirst' as const }
  if (filter.dlqIds) {
    const read = async (dlqIds: readonly string[]) =>
      (await store.run(operations.runs.deadRuns, { ...shared, filter: { dlqIds }, limit: PAGE_ITEMS })).runs
    return fixLetterIds(filter.dlqIds, read)
  }
  const upToNow = { ...filter, to: Math.min(filter.to ?? bounds.at, bounds.at) }
  return walk<DeadRunPlace>(bounds.most, (after, limit) => {
    const selector: DeadRunSelector = { ...shared, filter: upToNow, limit, ...(after && { after }) }
    return store.run(operations.runs.deadSeqs, selector)
  })
}

interface Letter {
  readonly seq: number
  readonly dlq_id: string | null
}

async function fixLetterIds(
  dlqIds: readonly string[],
  read: (part: readonly string[]) => Promise<readonly Letter[]>,
): Promise<FixedSet> {
  const distinct = [...new Set(dlqIds)]
  const letters: Letter[] = []
  for (const part of parts(distinct, PAGE_ITEMS)) letters.push(...(await read(part)))
  const known = new Set(letters.map((letter) => letter.dlq_id))
  return setOf(chunksOf(letters.map((letter) => letter.seq)), parts(distinct.filter((id) => !known.has(id))))
}

async function walk<Place>(
  most = Number.POSITIVE_INFINITY,
  page: (after: Place | undefined, limit: number) => Promise<{ seqs: readonly number[]; next: Place | undefined }>,
): Promise<FixedSet> {
  const chunks: FixedSet['chunks'][number][] = []
  let after: Place | undefined
  let left = most
  while (left > 0) {
    const { seqs, next } = await page(after, Math.min(PAGE_ITEMS, left))
    chunks.push(...chunksOf(seqs))
    left -= seqs.length
    if (next === undefined) break
    after = next
  }
  return setOf(chunks)
}
