/** A queue of work for each key, such as a database: one task after the other, in the order of the calls. */
export class Turns {
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

  /** Waits for all work that was queued before this call. @param key only for the work on this one. */
  async idle(key?: string): Promise<void> {
    await (key === undefined ? Promise.all(this.#last.values()) : this.#last.get(key))
  }
}

interface Owner {
  active: number
  /** What begins the next ones, in the order of the calls. */
  readonly waiting: Set<() => void>
}

/** Turns of owners, such as accounts: of each at most a number at a time. The rest waits, in the order of the calls. */
export class FewAtOnce {
  readonly #most: number
  readonly #owners = new Map<string, Owner>()

  constructor(most: number) {
    this.#most = most
  }

  /** How many of an owner wait for their turn. */
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
   * Resolves when the turn begins, with what ends it.
   * @param onWait called if it has to wait, with what gives its place up: it then resolves with `undefined`.
   */
  async begin(name: string, onWait?: (leave: () => void) => void): Promise<(() => void) | undefined> {
    const owner = this.#owners.get(name) ?? { active: 0, waiting: new Set() }
    this.#owners.set(name, owner)
    if (owner.active < this.#most) owner.active++
    else if (!(await waitIn(owner.waiting, onWait))) return undefined
    return () => this.#end(name, owner)
  }

  /** The next one takes the place of the one that ends. */
  #end(name: string, owner: Owner): void {
    const [next] = owner.waiting
    if (next) next()
    else if (--owner.active === 0) this.#owners.delete(name)
  }
}

/** Resolves to whether the turn has come: false if the place was given up. */
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
