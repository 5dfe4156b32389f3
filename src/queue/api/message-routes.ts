import { HomeportError } from '../../contract/errors/errors.js'
import { cancelMessage, cancelMessages, getMessage } from '../../contract/queue/messages.js'
import { MOST_IDS } from '../../contract/request-limits.js'
import { type Route, route } from '../../http/index.js'
import { ANY_MESSAGE, type MessageFilter } from '../transactions/messages-filter.js'
import * as messagesRead from '../transactions/messages-read.js'
import { cancelAll } from './cancel-all.js'
import { type ApiDeps, PLAIN } from './deps.js'
import { listOf, readSelection, type Selection, type WireFilters } from './filters.js'
import { messageView } from './message-view.js'

interface WireCancel extends WireFilters {
  readonly count?: number | undefined
}

/** What a bulk cancel selects; ids win over filters, and an empty list of ids selects nothing. */
function selectionOf(wire: WireCancel): Selection {
  if (wire.messageIds === undefined) return readSelection(wire)
  const messageIds = listOf('messageIds', MOST_IDS, wire.messageIds)
  return messageIds.length === 0 ? { kind: 'nothing' } : { kind: 'filter', filter: { ...ANY_MESSAGE, messageIds } }
}

/** How many messages one transaction cancels. */
const SMALL = 1_000

/** Whether a cancel may turn out to be a large one. */
function isLarge({ filter, most }: { filter: MessageFilter; most: number }): boolean {
  const { length } = filter.messageIds
  return (length === 0 || length > SMALL) && most > SMALL
}

type Lists<Body> = { [Name in keyof Body]: Body[Name] extends string | string[] | undefined ? string[] : Body[Name] }

/** In a body a filter may be one text; here each is a list. */
function lists<Body extends object>(body: Body): Lists<Body> {
  const members = Object.entries(body).map(([name, value]) => [name, typeof value === 'string' ? [value] : value])
  return Object.fromEntries(members) as Lists<Body>
}

/** Looking at messages and canceling them. */
export function messageRoutes(deps: ApiDeps): Route[] {
  return [
    route(getMessage, async ({ caller: { accountId }, params: { messageId } }) => {
      const row = await deps.store.run(messagesRead.message, { accountId, kind: PLAIN, messageId })
      if (!row || row.state === 'canceled') throw new HomeportError('message_not_found', { messageId })
      return messageView(row)
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
