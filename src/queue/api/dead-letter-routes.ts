import type { IncomingHttpHeaders } from 'node:http'
import { newId } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  deleteDeadLetter,
  deleteDeadLetters,
  getDeadLetter,
  listDeadLetters,
  retryDeadLetter,
  retryDeadLetters,
} from '../../contract/queue/dead-letters.js'
import { MAX_PAGE_IDS } from '../../contract/request-limits.js'
import { RUN_DEAD_FILTERS } from '../../contract/workflow/dead-letters.js'
import { type Call, type Route, route } from '../../http/index.js'
import { refuseForbiddenCallbacks } from '../publish/destination.js'
import { configOf, firstAttemptAt, labelColumn } from '../publish/draft.js'
import { readSettings } from '../publish/settings.js'
import type { DeadPage, DeadSelector, Revision } from '../transactions/messages-dead.js'
import * as messagesDead from '../transactions/messages-dead.js'
import { ANY_MESSAGE } from '../transactions/messages-filter.js'
import { type ApiDeps, PLAIN } from './deps.js'
import { listOf, readSelection, type WireFilters } from './filters.js'
import { deadLetterView, turnFor } from './message-view.js'
import { trimBodies } from './trim-bodies.js'

const MAX_PAGE_SIZE = 100
const CURSOR = /^\d{1,16}-\d{1,16}$/

interface WireDead extends WireFilters {
  readonly dlqIds?: readonly string[] | undefined
  readonly order?: 'earliestFirst' | 'latestFirst' | undefined
  readonly count?: number | undefined
  readonly cursor?: string | undefined
}

function cursorOf(cursor: string | undefined): string | undefined {
  if (cursor === undefined || cursor === '') return undefined
  if (CURSOR.test(cursor)) return cursor
  throw new HomeportError('invalid_request', {
    problem: `cursor is "${cursor.slice(0, 80)}"; send the cursor of the previous page, or none for the first page.`,
  })
}

/**
 * The selector of a request; `undefined` if it selects nothing. Ids win over
 * filters; an empty list of ids selects nothing.
 */
function selectorOf(accountId: string, wire: WireDead): DeadSelector | undefined {
  const shared = {
    accountId,
    kind: PLAIN,
    order: wire.order ?? 'earliestFirst',
    after: cursorOf(wire.cursor),
    limit: Math.min(wire.count ?? MAX_PAGE_SIZE, MAX_PAGE_SIZE),
  } as const
  if (wire.dlqIds !== undefined) {
    const dlqIds = listOf('dlqIds', MAX_PAGE_IDS, wire.dlqIds)
    return dlqIds.length === 0
      ? undefined
      : { ...shared, limit: Math.max(shared.limit, dlqIds.length), dlqIds, filter: ANY_MESSAGE }
  }
  const selection = readSelection(wire)
  return selection.kind === 'nothing' ? undefined : { ...shared, dlqIds: undefined, filter: selection.filter }
}

const only = (accountId: string, dlqId: string): DeadSelector => ({
  accountId,
  kind: PLAIN,
  dlqIds: [dlqId],
  filter: ANY_MESSAGE,
  order: 'earliestFirst',
  after: undefined,
  limit: 1,
})

const withCursor = (cursor: string | undefined): { cursor?: string } => (cursor === undefined ? {} : { cursor })

/** The cursor after a page of a list; if the page is not full, also the time of the last letter that was searched. */
function placeAfter({ letters, cursor }: DeadPage, { limit }: DeadSelector): { cursor?: string; searchedTo?: number } {
  if (cursor === undefined) return {}
  return letters.length < limit ? { cursor, searchedTo: Number(cursor.split('-')[0]) } : { cursor }
}

type Revising = Pick<ApiDeps, 'limits'> & Partial<Pick<ApiDeps, 'targets'>>

/**
 * Settings in the headers of a retry replace the stored ones (reference queue 2.11).
 * @throws HomeportError with the problem of a setting.
 */
export function revisionOf(headers: IncomingHttpHeaders, now: number, deps: Revising): Revision {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith('upstash-') && typeof value === 'string') texts[name] = value
  }
  const settings = readSettings(texts, now, deps.limits)
  refuseForbiddenCallbacks(texts, deps.targets ?? 'everything')
  return {
    nextAt: firstAttemptAt(settings, now),
    maxRetries: settings.retries,
    config: JSON.stringify(configOf(settings)),
    flowKey: settings.flowKey,
    labels: settings.labels.length > 0 ? labelColumn(settings.labels) : undefined,
  }
}

/** Most reads that one request makes to find a letter. */
const MAX_READS = 5

/** Reads pages until one has letters, at most `MAX_READS` of them. After that, the reply is empty and has a cursor. */
async function untilFound<Page extends { readonly cursor: string | undefined }>(
  selector: DeadSelector,
  read: (selector: DeadSelector) => Promise<Page>,
  countOf: (page: Page) => number,
): Promise<Page> {
  let page = await read(selector)
  for (let reads = 1; countOf(page) === 0 && page.cursor !== undefined && reads < MAX_READS; reads++) {
    page = await read({ ...selector, after: page.cursor })
  }
  return page
}

async function retry(
  deps: ApiDeps,
  call: Call,
  selector: DeadSelector,
): Promise<{ ids: string[]; cursor: string | undefined }> {
  const at = deps.clock.now()
  const revision = revisionOf(call.headers, at, deps)
  const ids = Array.from({ length: selector.limit }, () => newId('msg_', at))
  const { messageIds, offers, cursor } = await untilFound(
    selector,
    (one) => deps.store.run(messagesDead.retryDeadLetters, { selector: one, ids, at, revision }),
    ({ messageIds }) => messageIds.length,
  )
  deps.offer(offers)
  return { ids: messageIds, cursor }
}

const list = (deps: ApiDeps, selector: DeadSelector): Promise<DeadPage> =>
  untilFound(
    selector,
    (one) => deps.store.run(messagesDead.wholePage, one),
    ({ letters }) => letters.length,
  )

const remove = (deps: ApiDeps, selector: DeadSelector) =>
  untilFound(
    selector,
    (one) => deps.store.run(messagesDead.deleteDeadLetters, one),
    ({ deleted }) => deleted,
  )

/** Operations on one dead letter. */
function singleRoutes(deps: ApiDeps): Route[] {
  return [
    route(getDeadLetter, async ({ caller, params: { dlqId } }) => {
      const [letter] = (await list(deps, only(caller.accountId, dlqId))).letters
      if (!letter) throw new HomeportError('dead_letter_not_found', { dlqId })
      await turnFor(letter.body)
      return deadLetterView(letter)
    }),
    route(deleteDeadLetter, async ({ caller, params: { dlqId } }) => {
      const { deleted } = await remove(deps, only(caller.accountId, dlqId))
      if (deleted === 0) throw new HomeportError('dead_letter_not_found', { dlqId })
      return { deleted }
    }),
    route(retryDeadLetter, async (call) => {
      const { dlqId } = call.params
      const [messageId] = (await retry(deps, call, only(call.caller.accountId, dlqId))).ids
      if (messageId === undefined) throw new HomeportError('dead_letter_not_found', { dlqId })
      return { messageId }
    }),
  ]
}

/** Refuses filters that only dead letters of runs have. If they were ignored, the reply would contain unwanted letters. */
function refuseRunFilters(query: object): void {
  const given = Object.keys(RUN_DEAD_FILTERS).find((name) => name in query)
  if (given === undefined) return
  const problem = `\`${given}\` is a filter for the dead letters of workflow runs. Send source=workflow with it, or leave it out.`
  throw new HomeportError('invalid_request', { problem })
}

/** Operations on a page of dead letters. */
function bulkRoutes(deps: ApiDeps): Route[] {
  return [
    route(listDeadLetters, async ({ caller, query }) => {
      const source = deps.deadLetterSources.get(query.source ?? 'message')
      if (source) return source.list(caller, query)
      refuseRunFilters(query)
      const selector = query.source === 'workflow' ? undefined : selectorOf(caller.accountId, query)
      if (!selector) return { messages: [] }
      const page = await list(deps, selector)
      const shown = page.letters.map((letter) => trimBodies(deadLetterView(letter), query.trimBody))
      return { messages: shown, ...placeAfter(page, selector) }
    }),
    route(deleteDeadLetters, async ({ caller, query, body }) => {
      const selector = selectorOf(caller.accountId, { ...query, ...body })
      if (!selector) return { deleted: 0 }
      const { deleted, cursor } = await remove(deps, selector)
      return { deleted, ...withCursor(cursor) }
    }),
    route(retryDeadLetters, async (call) => {
      const selector = selectorOf(call.caller.accountId, { ...call.query, ...call.body })
      if (!selector) return { responses: [] }
      const { ids, cursor } = await retry(deps, call, selector)
      return { responses: ids.map((messageId) => ({ messageId })), ...withCursor(cursor) }
    }),
  ]
}

/** The dead letter queue. */
export function deadLetterRoutes(deps: ApiDeps): Route[] {
  return [...singleRoutes(deps), ...bulkRoutes(deps)]
}
