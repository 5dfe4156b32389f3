/**
 * Work that everybody may ask for at any time, such as reading a view again. Calls that come before it has begun share one
 * execution; a call during an execution gets the next one, because what it is about may have changed after that one read
 * it. Executions run one after the other: a slow older one never undoes a newer one.
 */
export class Joined<Result> {
  readonly #work: () => Promise<Result>
  #running: Promise<unknown> = Promise.resolve()
  #next: Promise<Result> | undefined

  constructor(work: () => Promise<Result>) {
    this.#work = work
  }

  /** Resolves with an execution that began after this call. */
  run(): Promise<Result> {
    if (this.#next) return this.#next
    const next = this.#running.then(() => {
      this.#next = undefined
      return this.#work()
    })
    this.#next = next
    this.#running = next.catch(() => undefined)
    return next
  }
}
