import { yieldToEventLoop } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import type { Ended } from './ended.js'

/**
 * Forgets drops when no offer can follow them: every operation that ran at the drop has ended, and its caller has had its turn.
 * Call it after each drop; one wait serves all drops that come meanwhile.
 */
export function forgetDropsLater(store: Store, ended: Ended): void {
  if (!ended.age()) return
  void store
    .settled()
    .then(yieldToEventLoop)
    .then(() => {
      ended.forgetAged()
      forgetDropsLater(store, ended)
    })
}
