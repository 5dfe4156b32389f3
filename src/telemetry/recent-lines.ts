const KEPT_LINES = 5_000
const KEPT_CHARACTERS = 2 ** 22

/** A line with its number; numbers ascend by one from 0. */
export interface NumberedLine {
  readonly number: number
  /** JSON. */
  readonly json: string
}

/** The newest lines of the log: at most 5,000, with 4 million characters together. Adding a line copies nothing. */
export class RecentLines {
  readonly #slots: string[] = []
  readonly #watchers = new Set<() => void>()
  #first = 0
  #next = 0
  #characters = 0

  /** The number of the oldest line that is kept. */
  get first(): number {
    return this.#first
  }

  /** The number that the next line gets. */
  get next(): number {
    return this.#next
  }

  /** Adds a line. A line that exceeds the limit for all lines is not kept. */
  add(line: string): void {
    if (line.length > KEPT_CHARACTERS) return
    while (this.#next - this.#first >= KEPT_LINES || this.#characters + line.length > KEPT_CHARACTERS) this.#dropFirst()
    this.#slots[this.#next % KEPT_LINES] = line
    this.#characters += line.length
    this.#next++
    for (const watcher of this.#watchers) watcher()
  }

  #dropFirst(): void {
    const slot = this.#first % KEPT_LINES
    this.#characters -= this.#slots[slot]?.length ?? 0
    this.#slots[slot] = ''
    this.#first++
  }

  /** A kept line. */
  at(number: number): NumberedLine | undefined {
    if (number < this.#first || number >= this.#next) return undefined
    return { number, json: (this.#slots[number % KEPT_LINES] ?? '').trimEnd() }
  }

  /** Calls `watcher` after each new line; it must not log. @returns a function that unsubscribes. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }
}
