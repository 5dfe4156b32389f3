import type { Publisher } from '../../../queue/index.js'
import type { Store } from '../../../store/index.js'

/** One thing happens after the other here: what waits for company would wait in vain. */
export function withoutPatience(store: Store): Store {
  return {
    run: (operation, args) => store.run({ ...operation, patienceMs: 0 }, args),
    describe: () => store.describe(),
    close: () => store.close(),
  }
}

/** Who triggers the runs of a world. */
export function publisherOf(accountId: string): Publisher {
  const caller = {
    accountId,
    email: 'model@example.com',
    accountType: 'paid',
    source: 'QUEUE_TOKEN',
    access: 'write',
    ip: '::1',
  } as const
  return { caller, ip: '::1' }
}
