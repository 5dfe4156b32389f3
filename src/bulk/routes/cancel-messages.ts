import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import type { LargeCancel } from '../../queue/index.js'
import { fixMessages, PAGE_ITEMS } from '../selector/freeze-messages.js'
import { createAction, type RouteDeps } from './creation.js'

/** Members of a filter that select everything are left out of the records. */
function givenOf(filter: object): object {
  return Object.fromEntries(
    Object.entries(filter).filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0)),
  )
}

/**
 * Cancels messages for the queue when they are more than fit into one transaction, and answers how many.
 * @throws HomeportError `bulk_action_interrupted` when the action goes on later, or was paused.
 */
export async function cancelManyMessages(
  deps: RouteDeps,
  caller: Caller,
  { filter, most }: Parameters<LargeCancel>[1],
): Promise<number | undefined> {
  const bounds = { accountId: caller.accountId, most, at: deps.clock.now() }
  const set = await fixMessages(deps.store, bounds, filter)
  if (set.matched <= PAGE_ITEMS) return undefined
  const wanted = { kind: 'cancelMessages' as const, selector: JSON.stringify(givenOf(filter)) }
  const stored = await createAction(deps, caller, wanted, async () => set)
  const ended = await deps.worker.finish(stored)
  if (ended.state !== 'paused') return ended.succeeded
  throw new HomeportError('bulk_action_interrupted', { actionId: ended.action_id, reason: 'It was paused.' })
}
