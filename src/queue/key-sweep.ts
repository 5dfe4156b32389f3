import type { Store } from '../store/index.js'
import * as flowKeys from './transactions/flow-keys.js'
import * as messagesRetention from './transactions/messages-retention.js'
import * as ruleKeys from './transactions/rule-keys.js'

/** Keys per transaction. Other traffic runs between two transactions. */
const KEYS_PER_STEP = 1_000

/**
 * Deletes expired deduplication keys, debounce and singleton keys that were taken before `before` and whose message has
 * ended, and flow-control keys that no message has named since `before`.
 * @param forget called with the deleted flow-control keys of each step.
 */
export async function sweepKeys(
  store: Store,
  { now, before }: { readonly now: number; readonly before: number },
  forget: (keys: readonly flowKeys.KeyPlace[]) => Promise<void>,
  shouldContinue: () => boolean,
): Promise<void> {
  const limit = KEYS_PER_STEP
  while (shouldContinue() && (await store.run(messagesRetention.removeExpiredKeys, { now, limit })));
  for (let from: number | undefined = 0; from !== undefined && shouldContinue(); )
    from = await store.run(ruleKeys.sweep, { from, before, limit })
  for (let after: flowKeys.KeyPlace | undefined = flowKeys.FIRST_KEY; after && shouldContinue(); ) {
    const swept: flowKeys.Swept = await store.run(flowKeys.sweep, { before, after, limit })
    if (swept.removed.length > 0) await forget(swept.removed)
    after = swept.next
  }
}
