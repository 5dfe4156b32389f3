import { commandClock, pause } from '../../base/index.js'
import { isTemporary, RECONNECT_MS } from './events.js'
import type { Session } from './remote.js'

/** Follows logs for which the server has no stream, by polling. */

const EVERY_MS = 500
/** The pause after a reading, as a multiple of its time: so polling a long log uses at most a fifth of the server's time. */
const REST_FACTOR = 4

/**
 * Yields the results of `read`, twice a second if it is quick, until the caller stops. When the server restarts, retries for
 * up to a minute.
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

/** Finds the new entries in successive readings of a log. */
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
