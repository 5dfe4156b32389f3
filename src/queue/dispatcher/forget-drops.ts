import { yieldToEventLoop } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import type { Ended } from './ended.js'

/**
 * Forgets drops when no late offer can follow them: when every operation that ran at the time of the drop has ended and its
 * caller has continued. Call it after each drop; drops during a wait share the next one.
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
