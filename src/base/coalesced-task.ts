/**
 * Work that many callers may request at any time, such as reading a view again. Calls before an execution has begun share
 * it. A call during an execution gets the next one, because the data may have changed after the running execution read it.
 * Executions run one after the other: a slow older one never overwrites the result of a newer one.
 */
export class CoalescedTask<Result> {
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
