import type { Accounts } from '../accounts/index.js'
import { type Clock, systemClock } from '../base/index.js'
import { createBulk } from '../bulk/index.js'
import { createQueue, type OnAttempt } from '../queue/index.js'
import { createWorkflow } from '../workflow/index.js'
import type { Foundations } from './foundations.js'

/** The queue, and workflows and bulk actions, which use it. */
export function composeQueue(
  { config, logger, store, meters, tracer, cluster }: Foundations,
  accounts: Accounts,
  { queueClock: clock = systemClock, onAttempt }: { readonly queueClock?: Clock; readonly onAttempt?: OnAttempt },
) {
  const queue = createQueue({
    ...config,
    store,
    clock,
    logger,
    onAttempt,
    tracer,
    cluster,
    keys: accounts,
    meter: meters.queue,
    heldAccounts: () => accounts.heldIds,
    dailyMessagesOf: (accountId: string) => accounts.dailyMessagesOf(accountId),
  })
  const workflow = createWorkflow({
    ...config,
    store,
    queue,
    clock,
    logger,
    meter: meters.workflow,
    tracer,
    cluster,
    publicUrl: config.publicQueueUrl,
    accountOfUser: (userId) => accounts.accountOfQueueUser(userId)?.accountId,
  })
  const bulk = createBulk({
    ...config,
    store,
    queue,
    clock,
    logger,
    cluster,
    meter: meters.bulk,
    runMeter: meters.workflow,
  })
  workflow.guard(bulk.gate)
  queue.delegateLargeCancels(bulk.cancelMessages)
  return { queue, workflow, bulk }
}
