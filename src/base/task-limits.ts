/** A queue of work for each key, such as a database: one task after the other, in the order of the calls. */
export class TasksByKey {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs the work after all earlier work on the same key. If it fails, only its own caller gets the error. */
  take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const turn = before.then(work)
    const settled = turn.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(key, settled)
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    })
    return turn
  }

  /** The keys that have work. */
  get keys(): readonly string[] {
    return [...this.#last.keys()]
  }

  /** Whether a key has work. */
  has(key: string): boolean {
    return this.#last.has(key)
  }

  /** Waits for all work that was queued before this call. @param key waits only for the work on this key. */
  async idle(key?: string): Promise<void> {
    await (key === undefined ? Promise.all(this.#last.values()) : this.#last.get(key))
  }
}

interface Owner {
  active: number
  /** Functions that begin the waiting turns, in the order of the calls. */
  readonly waiting: Set<() => void>
}

/** Limits how many tasks of each owner, such as an account, run at a time. The others wait, in the order of the calls. */
export class OwnerConcurrency {
  readonly #most: number
  readonly #owners = new Map<string, Owner>()

  constructor(most: number) {
    this.#most = most
  }

  /** Number of tasks of an owner that wait for their turn. */
  waiting(name: string): number {
    return this.#owners.get(name)?.waiting.size ?? 0
  }

  /** Runs the work in its turn. */
  async take<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const end = await this.begin(name)
    try {
      return await work()
    } finally {
      end?.()
    }
  }

  /**
   * Resolves when the turn begins, with a function that ends it.
   * @param onWait called if the task has to wait, with a function that cancels the wait: `begin` then resolves `undefined`.
   */
  async begin(name: string, onWait?: (leave: () => void) => void): Promise<(() => void) | undefined> {
    const owner = this.#owners.get(name) ?? { active: 0, waiting: new Set() }
    this.#owners.set(name, owner)
    if (owner.active < this.#most) owner.active++
    else if (!(await waitIn(owner.waiting, onWait))) return undefined
    return () => this.#end(name, owner)
  }

  /** Passes the place to the next waiting task. */
  #end(name: string, owner: Owner): void {
    const [next] = owner.waiting
    if (next) next()
    else if (--owner.active === 0) this.#owners.delete(name)
  }
}

/** Resolves to true when the turn comes, to false if the wait was cancelled. */
function waitIn(waiting: Owner['waiting'], onWait?: (leave: () => void) => void): Promise<boolean> {
  return new Promise((resolve) => {
    const begin = (): void => {
      waiting.delete(begin)
      resolve(true)
    }
    waiting.add(begin)
    onWait?.(() => {
      if (waiting.delete(begin)) resolve(false)
    })
  })
}
