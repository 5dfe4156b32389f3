import { yieldToEventLoop } from '../../base/index.js'
import * as messagesCancel from '../../queue/transactions/messages-cancel.js'
import { FIRST_DUE, type PendingPage, type PendingSelector } from '../../queue/transactions/messages-cancel.js'
import type { DeadSelector } from '../../queue/transactions/messages-dead.js'
import * as messagesDead from '../../queue/transactions/messages-dead.js'
import { ANY_MESSAGE, type MessageFilter } from '../../queue/transactions/messages-filter.js'
import type { Store } from '../../store/index.js'
import type {
  DeadRunFilter,
  DeadRunPlace,
  DeadRunSelector,
  NamedDeadRun,
} from '../../workflow/transactions/runs-dead.js'
import * as runsDead from '../../workflow/transactions/runs-dead.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import { chunksOf, type FixedSet, idsInBatches, packAbsent, SAMPLE_ITEMS } from './fixed-set.js'
import { type Refinement, unreadableOf } from './refine.js'

/** Messages per lookup. */
export const PAGE_ITEMS = 1_000
/** Pending messages per page, the most that one read covers. */
const PENDING_PAGE_ITEMS = 4_000
/** The message kind of plain messages. */
const PLAIN_KIND = 'http'

/** Bounds of a set of messages or dead letters. */
export interface Bounds {
  readonly accountId: string
  /** Maximum number of items, in the order of their kind. */
  readonly most: number | undefined
  /** Arrival of the request, Unix milliseconds. */
  readonly at: number
  /** The conditions; absent without any, and with ids. */
  readonly refinement?: Refinement | undefined
}

/** A set of numbers in the order of the preview. */
async function toFixedSet(seqs: readonly number[], absent: readonly string[]): Promise<FixedSet> {
  const first = seqs.slice(0, SAMPLE_ITEMS)
  return { chunks: chunksOf(seqs), absent: await packAbsent(new Set(absent)), matched: seqs.length, first }
}

/** Builds a set page by page, in order. */
class SetBuilder {
  readonly #chunks: FixedSet['chunks'][number][] = []
  readonly #first: number[] = []
  #items = 0

  add(seqs: readonly number[]): void {
    this.#items += seqs.length
    this.#chunks.push(...chunksOf(seqs))
    this.#first.push(...seqs.slice(0, SAMPLE_ITEMS - this.#first.length))
  }

  get items(): number {
    return this.#items
  }

  end(refinement?: Refinement): FixedSet {
    return { chunks: this.#chunks, absent: [], matched: this.items, first: this.#first, ...unreadableOf(refinement) }
  }
}

/**
 * Selects pending messages. Messages held back by a queue come first: if the ones ahead of them were cancelled first,
 * the held ones would become due during the cancel.
 */
export async function selectMessages(store: Store, bounds: Bounds, filter: MessageFilter): Promise<FixedSet> {
  if (filter.messageIds.length > 0) return selectNamedMessages(store, bounds, filter.messageIds)
  const set = new SetBuilder()
  await addPending(store, bounds, filter, 'held', set)
  await addPending(store, bounds, filter, 'pending', set)
  return set.end(bounds.refinement)
}

async function addPending(
  store: Store,
  { accountId, most = Number.POSITIVE_INFINITY, at: createdUpTo, refinement }: Bounds,
  filter: MessageFilter,
  state: PendingSelector['state'],
  set: SetBuilder,
): Promise<void> {
  let after: PendingPage['next'] = FIRST_DUE
  while (after && set.items < most) {
    const left = most - set.items
    const limit = refinement ? PENDING_PAGE_ITEMS : Math.min(PENDING_PAGE_ITEMS, left)
    const selector: PendingSelector = { accountId, kind: PLAIN_KIND, state, filter, createdUpTo, after, limit }
    const { places, next }: PendingPage = await store.run(messagesCancel.selectPending, selector)
    const seqs = places.map((place) => place.seq)
    set.add(refinement ? await refinement.keep(seqs, left) : seqs)
    after = next
  }
}

/** Finds messages by id. Ended messages are in the set too, so each gets its outcome. */
async function selectNamedMessages(
  store: Store,
  { accountId, most }: Bounds,
  ids: readonly string[],
): Promise<FixedSet> {
  const found: bulkSelect.NamedMessage[] = []
  // A hundred thousand ids take some milliseconds per step.
  await yieldToEventLoop()
  const distinct = [...new Set(ids)]
  await yieldToEventLoop()
  for (const batch of idsInBatches(distinct, PAGE_ITEMS)) {
    found.push(...(await store.run(bulkSelect.selectNamedMessages, { accountId, kind: PLAIN_KIND, ids: batch })))
  }
  const known = new Set(found.map((row) => row.message_id))
  const seqsOf = (rows: typeof found) => rows.map((row) => row.seq).sort((a, b) => a - b)
  const open = seqsOf(found.filter(isUnfinished)).slice(0, most)
  const ended = seqsOf(found.filter((row) => !isUnfinished(row)))
  const absent = distinct.filter((id) => !known.has(id))
  await yieldToEventLoop()
  const all = await toFixedSet([...open, ...ended], absent)
  return { ...all, matched: open.length, first: open.slice(0, SAMPLE_ITEMS) }
}

const isUnfinished = ({ state }: bulkSelect.NamedMessage): boolean => state === 'held' || state === 'pending'

/** Selects dead letters of messages by id, otherwise by filter. */
export async function selectDeadLetters(
  store: Store,
  bounds: Bounds,
  filter: MessageFilter,
  dlqIds: readonly string[] | undefined,
): Promise<FixedSet> {
  const { accountId } = bounds
  const shared = { accountId, kind: PLAIN_KIND, order: 'earliestFirst' as const, limit: PAGE_ITEMS }
  if (dlqIds) {
    const read = async (batch: readonly string[]) => {
      const selector: DeadSelector = { ...shared, dlqIds: batch, filter: ANY_MESSAGE, after: undefined }
      return (await store.run(messagesDead.deadLetters, selector)).letters
    }
    return selectLetterIds(dlqIds, bounds.most, read)
  }
  const upToNow = { ...filter, toDate: Math.min(filter.toDate ?? bounds.at, bounds.at) }
  return selectPages<string>(bounds, async (after, limit) => {
    const selector: DeadSelector = { ...shared, dlqIds: undefined, filter: upToNow, after, limit }
    const { seqs, cursor: next } = await store.run(messagesDead.deadSeqs, selector)
    return { seqs, next }
  })
}

/** Selects dead letters of runs. */
export async function selectDeadRuns(store: Store, bounds: Bounds, filter: DeadRunFilter): Promise<FixedSet> {
  const shared = { accountId: bounds.accountId, order: 'earliestFirst' as const }
  if (filter.dlqIds) return selectLetterIds(filter.dlqIds, bounds.most, namedRuns(store, bounds))
  const upToNow = { ...filter, to: Math.min(filter.to ?? bounds.at, bounds.at) }
  return selectPages<DeadRunPlace>(bounds, (after, limit) => {
    const selector: DeadRunSelector = { ...shared, filter: upToNow, limit, ...(after && { after }) }
    return store.run(runsDead.deadSeqs, selector)
  })
}

/**
 * Selects dead letters of runs whose failure function failed. If they are named by id, other dead letters are in the set
 * too, so that each gets its outcome.
 */
export async function selectFailedCallbacks(store: Store, bounds: Bounds, filter: DeadRunFilter): Promise<FixedSet> {
  if (!filter.dlqIds) return selectDeadRuns(store, bounds, { ...filter, failureStates: ['CALLBACK_FAIL'] })
  const { letters, absent } = await findLetters(filter.dlqIds, namedRuns(store, bounds))
  const hasFailed = ({ failure_state }: NamedDeadRun) => failure_state === 'CALLBACK_FAIL'
  const seqsOf = (some: typeof letters) => some.map(({ seq }) => seq)
  const failed = seqsOf(letters.filter(hasFailed)).slice(0, bounds.most)
  const others = seqsOf(letters.filter((letter) => !hasFailed(letter)))
  const all = await toFixedSet([...failed, ...others], absent)
  return { ...all, matched: failed.length, first: failed.slice(0, SAMPLE_ITEMS) }
}

/** Reads dead letters of runs by id. */
function namedRuns(store: Store, { accountId }: Bounds) {
  return (dlqIds: readonly string[]) => store.run(runsDead.deadNamed, { accountId, dlqIds })
}

interface Letter {
  readonly seq: number
  readonly dlq_id: string | null
}

type LetterReader<Found extends Letter> = (batch: readonly string[]) => Promise<readonly Found[]>

async function selectLetterIds(
  dlqIds: readonly string[],
  most: number | undefined,
  read: LetterReader<Letter>,
): Promise<FixedSet> {
  const { letters, absent } = await findLetters(dlqIds, read)
  const seqs = letters.map((letter) => letter.seq).slice(0, most)
  return toFixedSet(seqs, absent)
}

/** The timestamp an id begins with. */
const timeOf = (dlqId: string): number => Number.parseInt(dlqId, 10) || 0

/** Finds dead letters by id. `absent`: ids that match none. */
async function findLetters<Found extends Letter>(dlqIds: readonly string[], read: LetterReader<Found>) {
  await yieldToEventLoop()
  const distinct = [...new Set(dlqIds)]
  const letters: Found[] = []
  // Letters that failed at about the same time are stored together.
  const byTime = distinct.toSorted((one, other) => timeOf(one) - timeOf(other))
  for (const batch of idsInBatches(byTime, PAGE_ITEMS)) letters.push(...(await read(batch)))
  const known = new Set(letters.map((letter) => letter.dlq_id))
  return { letters, absent: distinct.filter((id) => !known.has(id)) }
}

async function selectPages<Place>(
  { most = Number.POSITIVE_INFINITY, refinement }: Bounds,
  page: (after: Place | undefined, limit: number) => Promise<{ seqs: readonly number[]; next: Place | undefined }>,
): Promise<FixedSet> {
  const set = new SetBuilder()
  let after: Place | undefined
  while (set.items < most) {
    const left = most - set.items
    const { seqs, next } = await page(after, refinement ? PAGE_ITEMS : Math.min(PAGE_ITEMS, left))
    set.add(refinement ? await refinement.keep(seqs, left) : seqs)
    if (next === undefined) break
    after = next
  }
  return set.end(refinement)
}
