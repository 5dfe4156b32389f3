import type { Store } from '../types.js'

/** A store whose operations run through another function. Everything else is that of `store`. */
export function wrappedStore(store: Store, run: Store['run']): Store {
  return {
    run,
    settled: () => store.settled(),
    onLostCommit: (listener) => store.onLostCommit(listener),
    describe: () => store.describe(),
    close: () => store.close(),
  }
}
