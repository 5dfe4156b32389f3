import { yieldToEventLoop } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import type { Backlog } from './backlog.js'

/**
 * Forgets drops when no offer can follow them: every operation that ran at the drop has ended, and its caller has had its turn.
 * Call it after each drop; one wait serves all drops that come meanwhile.
 */
export function forgetDropsLater(store: Store, backlog: Backlog): void {
  if (!backlog.ageDrops()) return
  void store
    .settled()
    .then(yieldToEventLoop)
    .then(() => {
      backlog.forgetAgedDrops()
      forgetDropsLater(store, backlog)
    })
}
