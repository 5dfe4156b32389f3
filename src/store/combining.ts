import { systemClock, type Timer } from '../base/index.js'
import type { AnyOperation } from './operation.js'

/** How calls of an operation are combined, for any types. */
export type AnyCombining = NonNullable<AnyOperation['combining']>

/**
 * Collects items that are handled together. Items wait until the end of the tick. If all of them may be delayed, they wait
 * until the delay of the first one is over.
 */
export class Gathering<Item> {
  readonly #onDue: () => void
  #items: Item[] = []
  /** When `onDue` is called: after this tick, or later if everything may be delayed. */
  #due: 'never' | 'soon' | Timer = 'never'

  /** @param onDue called when the gathered items have waited long enough. */
  constructor(onDue: () => void) {
    this.#onDue = onDue
  }

  get size(): number {
    return this.#items.length
  }

  /** Whether `onDue` is called after this tick. */
  get isDueSoon(): boolean {
    return this.#due === 'soon'
  }

  add(item: Item, maxDelayMs: number): void {
    this.#items.push(item)
    if (maxDelayMs === 0) this.dueSoon()
    else if (this.#due === 'never') this.#due = systemClock.after(maxDelayMs, () => this.#end())
  }

  /** Calls `onDue` after this tick. */
  dueSoon(): void {
    if (this.#due === 'soon') return
    this.#cancel()
    this.#due = 'soon'
    setImmediate(() => this.#end())
  }

  /** Removes the first items, in the order in which they came. */
  take(most: number): Item[] {
    const taken = this.#items.splice(0, most)
    if (this.#items.length === 0 && this.#due !== 'soon') this.#cancel()
    return taken
  }

  /** Removes the items that pass a test, which sees each once, in order. */
  takeWhere(test: (item: Item) => boolean): Item[] {
    const taken: Item[] = []
    const left: Item[] = []
    for (const item of this.#items) (test(item) ? taken : left).push(item)
    this.#items = left
    if (left.length === 0 && this.#due !== 'soon') this.#cancel()
    return taken
  }

  #cancel(): void {
    if (this.#due !== 'never' && this.#due !== 'soon') this.#due.cancel()
    this.#due = 'never'
  }

  #end(): void {
    this.#cancel()
    this.#onDue()
  }
}

/** Replaces the calls of a batch that can be combined; the others stay as they are and come first. */
export function combineBatch<Call extends { readonly combining?: AnyCombining | undefined }>(
  batch: readonly Call[],
  combine: (combining: AnyCombining, group: readonly Call[]) => Call,
): readonly Call[] {
  const groups = new Map<AnyCombining, Call[]>()
  for (const call of batch) {
    if (!call.combining) continue
    const group = groups.get(call.combining)
    if (group) group.push(call)
    else groups.set(call.combining, [call])
  }
  const many = [...groups].filter(([, group]) => group.length > 1)
  if (many.length === 0) return batch
  const joined = many.map(([combining, group]) => combine(combining, group))
  const isAlone = ({ combining }: Call): boolean => !combining || groups.get(combining)?.length === 1
  return [...batch.filter(isAlone), ...joined]
}
