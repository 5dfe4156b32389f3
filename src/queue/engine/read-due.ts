import { operations, type Store } from '../../store/index.js'
import { type DuePage, partOf } from '../../store/operations/messages-due.js'
import type { Load } from './coverage.js'
import { LARGEST_HELD_BODY } from './entry.js'

/** Reads what a load asks for, a page of it. */
export function readDue(store: Store, load: Load): Promise<DuePage> {
  const { ofAccount, ofAll, ofFlow, ofHost } = operations.messagesDue
  const { after, until, limit } = load
  const range = { after, until, limit, largestBody: LARGEST_HELD_BODY }
  switch (load.kind) {
    case 'all':
      return store.run(ofAll, { ...range, exceptAccounts: load.exceptAccounts, exceptLanes: load.exceptLanes })
    case 'account':
      return store.run(ofAccount, { ...range, accountId: load.accountId, exceptLanes: load.exceptLanes })
    case 'lane': {
      const { accountId } = load
      const part = partOf(load.lane, accountId)
      return 'host' in part
        ? store.run(ofHost, { ...range, accountId, ...part })
        : store.run(ofFlow, { ...range, accountId, ...part })
    }
  }
}
