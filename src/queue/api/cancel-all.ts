import type { DuePlace } from '../transactions/messages.js'
import * as messagesCancel from '../transactions/messages-cancel.js'
import { FIRST_DUE, type PendingPage, type PendingSelector } from '../transactions/messages-cancel.js'
import type { MessageFilter } from '../transactions/messages-filter.js'
import { type ApiDeps, PLAIN } from './deps.js'

/** How many messages one transaction cancels; other traffic goes on between two of them. */
const CHUNK = 1_000

/** What is cancelled: at most `most` messages of an account that pass a filter. */
export interface CancelRequest {
  readonly accountId: string
  readonly filter: MessageFilter
  readonly most: number
  /**
   * Which of them, when no ids are named: those that were published before now, so that the set does not grow while it
   * is worked on, or all there are, also those from before the clock was set back. Default `published`.
   */
  readonly meaning?: 'published' | 'all'
}

/**
 * Cancels chunk by chunk, and answers how many messages that were. Those that wait for their turns come first: were
 * the ones before them cancelled first, their turns would come in the middle of it.
 */
export async function cancelAll(deps: ApiDeps, request: CancelRequest): Promise<number> {
  const at = deps.clock.now()
  const held = await cancelThose(deps, request, 'held', at)
  return held + (await cancelThose(deps, { ...request, most: request.most - held }, 'pending', at))
}

async function cancelThose(
  deps: ApiDeps,
  { accountId, filter, most, meaning }: CancelRequest,
  state: PendingSelector['state'],
  at: number,
): Promise<number> {
  const createdUpTo = meaning === 'all' || filter.messageIds.length > 0 ? Number.MAX_SAFE_INTEGER : at
  let after: DuePlace | undefined = FIRST_DUE
  let cancelled = 0
  while (after && cancelled < most) {
    const limit = Math.min(CHUNK, most - cancelled)
    const selector: PendingSelector = { accountId, kind: PLAIN, state, filter, createdUpTo, after, limit }
    const { places, next }: PendingPage = await deps.store.run(messagesCancel.selectPending, selector)
    cancelled += await end(deps, places, at)
    after = next
  }
  return cancelled
}

async function end(deps: ApiDeps, places: readonly DuePlace[], at: number): Promise<number> {
  if (places.length === 0) return 0
  const seqs = places.map((place) => place.seq)
  const ended = await deps.store.run(messagesCancel.cancel, { seqs, at })
  if (ended.seqs.length > 0) deps.drop({ seqs: ended.seqs })
  deps.offer(ended.offers)
  return ended.seqs.length
}
