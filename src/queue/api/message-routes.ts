import { HomeportError } from '../../contract/errors/errors.js'
import { cancelMessage, cancelMessages, getMessage } from '../../contract/queue/messages.js'
import { MAX_IDS } from '../../contract/request-limits.js'
import { type Route, route } from '../../http/index.js'
import type { DuePlace } from '../transactions/messages.js'
import * as messagesCancel from '../transactions/messages-cancel.js'
import { FIRST_DUE, type PendingPage, type PendingSelector } from '../transactions/messages-cancel.js'
import { ANY_MESSAGE, type MessageFilter } from '../transactions/messages-filter.js'
import * as messagesRead from '../transactions/messages-read.js'
import { type ApiDeps, PLAIN } from './deps.js'
import { listOf, readSelection, type Selection, type WireFilters } from './filters.js'
import { messageView, turnFor } from './message-view.js'

/** Messages cancelled in one transaction. Other traffic runs between two transactions. */
const CANCEL_BATCH = 1_000

/** Cancels at most `most` messages of an account that match a filter. */
export interface CancelRequest {
  readonly accountId: string
  readonly filter: MessageFilter
  readonly most: number
  /**
   * Without ids: `published` selects messages created up to now, so that the set does not grow
   * meanwhile. `all` selects every message, including messages whose creation is in the future because
   * the clock was set back. Default `published`.
   */
  readonly scope?: 'published' | 'all'
}

/**
 * Cancels messages batch by batch. Returns how many. Held messages are cancelled first: otherwise the cancel of pending
 * messages would give held ones their turns.
 */
export async function cancelAll(deps: ApiDeps, request: CancelRequest): Promise<number> {
  const at = deps.clock.now()
  const held = await cancelInState(deps, request, 'held', at)
  return held + (await cancelInState(deps, { ...request, most: request.most - held }, 'pending', at))
}

async function cancelInState(
  deps: ApiDeps,
  { accountId, filter, most, scope }: CancelRequest,
  state: PendingSelector['state'],
  at: number,
): Promise<number> {
  const createdUpTo = scope === 'all' || filter.messageIds.length > 0 ? Number.MAX_SAFE_INTEGER : at
  let after: DuePlace | undefined = FIRST_DUE
  let cancelled = 0
  while (after && cancelled < most) {
    const limit = Math.min(CANCEL_BATCH, most - cancelled)
    const selector: PendingSelector = { accountId, kind: PLAIN, state, filter, createdUpTo, after, limit }
    const { places, next }: PendingPage = await deps.store.run(messagesCancel.selectPending, selector)
    cancelled += await cancelBatch(deps, places, at)
    after = next
  }
  return cancelled
}

async function cancelBatch(deps: ApiDeps, places: readonly DuePlace[], at: number): Promise<number> {
  if (places.length === 0) return 0
  const seqs = places.map((place) => place.seq)
  const ended = await deps.store.run(messagesCancel.cancel, { seqs, at })
  // Offered before the drop: other nodes may confirm the drop seconds later, and
  // another cancel may have ended these by then.
  deps.offer(ended.offers)
  if (ended.seqs.length > 0) await deps.dropEverywhere({ seqs: ended.seqs })
  return ended.seqs.length
}

interface WireCancel extends WireFilters {
  readonly count?: number | undefined
}

/** The messages that a bulk cancel selects. Ids win over filters; an empty list of ids selects nothing. */
function selectionOf(wire: WireCancel): Selection {
  if (wire.messageIds === undefined) return readSelection(wire)
  const messageIds = listOf('messageIds', MAX_IDS, wire.messageIds)
  return messageIds.length === 0 ? { kind: 'nothing' } : { kind: 'filter', filter: { ...ANY_MESSAGE, messageIds } }
}

/** Whether a cancel may concern more than one batch, so that a bulk action should do it. */
function isLarge({ filter, most }: { filter: MessageFilter; most: number }): boolean {
  const { length } = filter.messageIds
  return (length === 0 || length > CANCEL_BATCH) && most > CANCEL_BATCH
}

type Lists<Body> = { [Name in keyof Body]: Body[Name] extends string | string[] | undefined ? string[] : Body[Name] }

/** Turns each filter of a body into a list: it may be a single text. */
function lists<Body extends object>(body: Body): Lists<Body> {
  const members = Object.entries(body).map(([name, value]) => [name, typeof value === 'string' ? [value] : value])
  return Object.fromEntries(members) as Lists<Body>
}

/** Reading and cancelling messages. */
export function messageRoutes(deps: ApiDeps): Route[] {
  return [
    route(getMessage, async ({ caller: { accountId }, params: { messageId }, query: { cancelled = false } }) => {
      const row = await deps.store.run(messagesRead.message, { accountId, kind: PLAIN, messageId })
      if (!row || (row.state === 'canceled' && !cancelled)) throw new HomeportError('message_not_found', { messageId })
      await turnFor(row.body)
      return messageView(row, deps.clock.now())
    }),
    route(cancelMessage, async ({ caller: { accountId }, params: { messageId } }) => {
      const filter = { ...ANY_MESSAGE, messageIds: [messageId] }
      const cancelled = await cancelAll(deps, { accountId, filter, most: 1 })
      if (cancelled === 0) throw new HomeportError('message_not_found', { messageId })
      return { cancelled }
    }),
    route(cancelMessages, async ({ caller, query, body }) => {
      const wire: WireCancel = { ...query, ...(body && lists(body)) }
      const selection = selectionOf(wire)
      if (selection.kind === 'nothing') return { cancelled: 0 }
      const most = wire.messageIds === undefined ? (wire.count ?? Number.MAX_SAFE_INTEGER) : Number.MAX_SAFE_INTEGER
      const { accountId } = caller
      const request = { filter: selection.filter, most }
      const large = isLarge(request) ? await deps.largeCancel()?.(caller, request) : undefined
      return { cancelled: large ?? (await cancelAll(deps, { accountId, ...request })) }
    }),
  ]
}
