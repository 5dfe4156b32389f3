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

  /** Waits for all work that was queued before this call. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values())
  }
}

interface Owner {
  active: number
  readonly waiting: (() => void)[]
}

/** Work of owners, such as accounts: of each at most a number at a time. The rest waits, in the order of the calls. */
export class FewAtOnce {
  readonly #most: number
  readonly #owners = new Map<string, Owner>()

  constructor(most: number) {
    this.#most = most
  }

  /** Runs the work as soon as fewer of its owner are active. */
  async take<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const owner = this.#owners.get(name) ?? { active: 0, waiting: [] }
    this.#owners.set(name, owner)
    if (owner.active < this.#most) owner.active++
    else await new Promise<void>((resolve) => owner.waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = owner.waiting.shift()
      // The next one takes the place of the one that ends.
      if (next) next()
      else if (--owner.active === 0) this.#owners.delete(name)
    }
  }
}
