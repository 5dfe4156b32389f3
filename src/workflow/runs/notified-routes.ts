import type { Static } from 'typebox'
import { listNotifiedEvents } from '../../contract/workflow/events.js'
import { type Route, route } from '../../http/index.js'
import { checkUnit } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { NotifiedArgs, NotifiedEvent } from '../transactions/runs-notified.js'
import * as runsNotified from '../transactions/runs-notified.js'

/** Events on a page. */
const MAX_EVENTS = 100

type NotifiedQuery = Static<NonNullable<(typeof listNotifiedEvents)['query']>>

/** The route that lists received events. */
export function notifiedRoutes({ store }: { readonly store: Store }): Route[] {
  return [
    route(listNotifiedEvents, async ({ query, caller: { accountId } }) => {
      const { count = MAX_EVENTS, cursor } = query
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor)
      const args = { accountId, filter: filterOf(query), before, limit: count + 1 }
      const found = await store.run(runsNotified.notified, args)
      const events = found.slice(0, count)
      const next = found.length > count ? events.at(-1)?.seq : undefined
      return { events: events.map(eventOf), ...(next !== undefined && { cursor: String(next) }) }
    }),
  ]
}

function filterOf({ eventId, prefix, outcome, fromDate: from, toDate: to }: NotifiedQuery): NotifiedArgs['filter'] {
  checkUnit('fromDate', from)
  checkUnit('toDate', to)
  return {
    ...(eventId !== undefined && { eventId }),
    ...(prefix !== undefined && { prefix }),
    ...(outcome !== undefined && { outcome }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  }
}

const eventOf = ({ eventId, at, source, outcome, woken, runIds, bytes }: NotifiedEvent) => ({
  eventId,
  at,
  by: source,
  outcome,
  woken,
  bytes,
  workflowRunIds: [...runIds],
})
