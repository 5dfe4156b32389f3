import { commandClock, pause } from '../../base/index.js'
import { isTemporary, RECONNECT_MS } from './events.js'
import type { Session } from './remote.js'

/** Follows logs that the server has no stream for, by reading them again and again. */

const EVERY_MS = 500
/** A reading may take long, as that of a long log: the server works for it a fifth of the time at most. */
const REST_FACTOR = 4

/**
 * Yields what `read` finds, twice a second if that is quick, for as long as it is wanted. Goes on for up to a minute when
 * the server restarts.
 * @throws what `read` throws; at once when the first reading fails.
 */
export async function* readings<Found>(read: () => Promise<Found>): AsyncGenerator<Found> {
  let lastMs: number | undefined
  for (;;) {
    const beganMs = performance.now()
    let readMs = 0
    try {
      const found = await read()
      readMs = performance.now() - beganMs
      lastMs = performance.now()
      yield found
    } catch (error) {
      const mayRetry = lastMs !== undefined && performance.now() - lastMs < RECONNECT_MS
      if (!mayRetry || !isTemporary(error)) throw error
    }
    await pause(commandClock, Math.max(EVERY_MS, readMs * REST_FACTOR))
  }
}

/** An entry of a log. */
interface Entry {
  /** Unix milliseconds. */
  readonly time: number
}

/** Finds the entries of a log that it was not given before. */
export class NewEntries<Kind extends Entry> {
  readonly #keyOf: (entry: Kind) => string
  readonly #seen = new Map<string, number>()

  /** @param keyOf names an entry; two entries of a log never have the same key. */
  constructor(keyOf: (entry: Kind) => string) {
    this.#keyOf = keyOf
  }

  /**
   * The new ones, oldest first.
   * @param entries as the server lists them, newest first: entries of one millisecond keep that order.
   */
  take(entries: readonly Kind[]): Kind[] {
    const fresh = entries.filter((entry) => !this.#seen.has(this.#keyOf(entry)))
    for (const entry of fresh) this.#seen.set(this.#keyOf(entry), entry.time)
    return fresh.toReversed().toSorted((one, other) => one.time - other.time)
  }

  /** Forgets entries before a time, Unix milliseconds: they are not read again. */
  forgetBefore(time: number): void {
    for (const [key, at] of this.#seen) if (at < time) this.#seen.delete(key)
  }
}

/** Prints one entry: a line of JSON with `--json`. */
export function printEntry({ io, isJson }: Session, entry: object, text: () => string): void {
  io.out(isJson ? `${JSON.stringify(entry)}\n` : text())
}
