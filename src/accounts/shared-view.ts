import type { Cluster } from '../cluster/index.js'

/** The topic of changes of accounts, keys and tokens. */
const TOPIC = 'accounts'

/** What `SharedView` is built from. */
export interface SharedViewDeps {
  readonly cluster: Cluster
  /** Reads everything from the store. */
  readonly load: () => Promise<number>
  /** Follows what another node has changed, once it is loaded. */
  readonly onForeignChange: () => Promise<void>
}

/**
 * Keeps the view of accounts, keys and tokens equal to the store, on every node. Loads run one after the other: a slow older
 * read must not bring back a key that was deleted since. Callers that come while one load runs share the next one.
 */
export class SharedView {
  readonly #deps: SharedViewDeps
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<number> | undefined

  constructor(deps: SharedViewDeps) {
    this.#deps = deps
    deps.cluster.handle(TOPIC, async () => {
      await this.load()
      await deps.onForeignChange()
    })
  }

  /** Loads what is committed now; resolves to the number of accounts. */
  load(): Promise<number> {
    this.#next ??= this.#afterRunning()
    return this.#next
  }

  #afterRunning(): Promise<number> {
    const load = this.#running.then(() => {
      // A caller that comes from now on needs another load: this one may have read already.
      this.#next = undefined
      return this.#deps.load()
    })
    this.#running = load.catch(() => undefined)
    return load
  }

  /** The same after a change that this node has committed: resolves when every node acts by it. */
  async share(): Promise<number> {
    const [count] = await Promise.all([this.load(), this.#deps.cluster.notify(TOPIC, null)])
    return count
  }
}
