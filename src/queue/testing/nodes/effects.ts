import type { Operation } from '../../../store/operation.js'

/** Callbacks of a simulation for calls of the store that have taken effect, by operation. */
export class Effects {
  readonly #seen = new Map<string, ((args: never, result: never) => void)[]>()
  readonly #written: ((name: string) => void)[] = []

  /** Calls `see` after each call of the operation that has taken effect, even if its caller never gets the reply. */
  on<Args, Result>({ name }: Operation<Args, Result>, see: (args: Args, result: Result) => void): void {
    this.#seen.set(name, [...(this.#seen.get(name) ?? []), see])
  }

  /** Calls `see` with the name of each write that has taken effect. */
  onWrite(see: (name: string) => void): void {
    this.#written.push(see)
  }

  /** A call has taken effect. */
  happened<Args, Result>({ name, access }: Operation<Args, Result>, args: Args, result: Result): void {
    if (access === 'write') for (const see of this.#written) see(name)
    // Safe: `on` takes functions for the arguments and the result of the operation of this name.
    for (const see of this.#seen.get(name) ?? []) (see as (args: Args, result: Result) => void)(args, result)
  }
}
