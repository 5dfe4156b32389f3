import { operations, type Store } from '../store/index.js'
import { Ascending } from './ascending.js'
import { type Bounds, type FixedSet, type Limits, Packing, packAbsent, parts } from './fixed-set.js'

/**
 * Fixing a set that is given by ids. Of a list of hundreds of thousands nobody ever holds more than a page as texts.
 */

type NamedRuns = operations.bulkNamed.NamedRuns

/** Selects the runs that pages of ids name. An id may come more than once. */
export async function fixNamed(store: Store, bounds: Bounds, pages: readonly (readonly string[])[]): Promise<FixedSet> {
  const { accountId, bound } = bounds
  const found = new Found(store)
  let before: Promise<NamedRuns> | undefined
  // The next page is asked for before the last is answered: nothing idles between them.
  for (const ids of pages) {
    const asked = store.run(operations.bulkNamed.selectNamed, { accountId, ids, bound })
    // The next step awaits it; when the one before fails, nothing does.
    asked.catch(() => undefined)
    if (before) found.add(await before)
    before = asked
  }
  if (before) found.add(await before)
  return found.fix(bounds)
}

/** So many pieces are with the store while the next one arrives. */
const AHEAD = 3

/** What looking up has come to: all has been found so far; not all pieces were ids; or the store has failed. */
type Progress = { readonly kind: 'found' | 'odd' } | { readonly kind: 'failed'; readonly error: unknown }

/** A fixed set, and how many ids were given for it. */
export interface SentSet {
  readonly set: FixedSet
  readonly given: number
}

/**
 * Looks ids up while they arrive, in pieces as they were sent, and no faster than that goes. Nothing comes of it before
 * the set is fixed.
 */
export class ArrivingIds {
  readonly #store: Store
  readonly #accountId: string
  readonly #found: Found
  readonly #underWay = new Set<Promise<void>>()
  #progress: Progress = { kind: 'found' }
  #bound: Promise<number> | undefined
  #first: Uint8Array | undefined

  constructor(store: Store, accountId: string) {
    this.#store = store
    this.#accountId = accountId
    this.#found = new Found(store)
  }

  /** The first of the ids, at most so many; `undefined` when these are no ids. */
  first(most: number): string[] | undefined {
    return this.#first && operations.bulkNamed.textsOf(this.#first)?.slice(0, most)
  }

  /** Looks a piece up. @returns what to wait for before the next one. */
  add(elements: Uint8Array): Promise<void> | undefined {
    if (this.#progress.kind !== 'found') return undefined
    this.#first ??= elements
    const over: Promise<void> = this.#look(elements).finally(() => this.#underWay.delete(over))
    this.#underWay.add(over)
    return this.#underWay.size < AHEAD ? undefined : Promise.race(this.#underWay)
  }

  async #look(elements: Uint8Array): Promise<void> {
    try {
      this.#bound ??= this.#store.run(operations.bulkSelect.newest, {})
      const args = { accountId: this.#accountId, elements, bound: await this.#bound }
      const runs = await this.#store.run(operations.bulkNamed.selectSent, args)
      if (runs) this.#found.add(runs)
      else this.#progress = { kind: 'odd' }
    } catch (error) {
      this.#progress = { kind: 'failed', error }
    }
  }

  /**
   * The runs that all of the ids name; `undefined` when these are no ids, and nothing is to be done.
   * @throws what the store has failed with.
   */
  async fix(limits: Limits): Promise<SentSet | undefined> {
    await Promise.all(this.#underWay)
    if (this.#progress.kind === 'failed') throw this.#progress.error
    if (this.#progress.kind === 'odd') return undefined
    return { set: await this.#found.fix(limits), given: this.#found.given }
  }
}

/** Of so many runs it is looked up at once whether they have ended. */
const PAGE_RUNS = 4_000

/** What has been found so far. */
class Found {
  readonly #store: Store
  readonly #runs = new Ascending()
  readonly #absent = new Set<string>()
  #given = 0

  constructor(store: Store) {
    this.#store = store
  }

  add({ found, absent, given }: NamedRuns): void {
    this.#runs.add(found)
    for (const id of absent) this.#absent.add(id)
    this.#given += given
  }

  get given(): number {
    return this.#given
  }

  /** The outcome of a run is decided when its turn comes, unless a limit asks for unfinished runs only. */
  fix({ most, sample }: Limits): Promise<FixedSet> {
    return most === undefined && sample === 0 ? this.#all() : this.#oldest(most ?? Number.POSITIVE_INFINITY, sample)
  }

  async #all(): Promise<FixedSet> {
    const packing = new Packing()
    let matched = 0
    for await (const seqs of this.#runs.sorted()) {
      packing.add(seqs)
      matched += seqs.length
    }
    return { chunks: packing.end(), absent: await packAbsent(this.#absent), matched, first: [] }
  }

  /** The oldest unfinished ones, with all that have ended. */
  async #oldest(most: number, sample: number): Promise<FixedSet> {
    const packing = new Packing()
    const first: number[] = []
    let matched = 0
    for await (const some of this.#runs.sorted()) {
      for (const seqs of parts(some, PAGE_RUNS)) {
        const unfinished = await this.#store.run(operations.bulkNamed.selectUnfinished, { seqs })
        const left = new Set(unfinished.slice(most - matched))
        const taken = unfinished.slice(0, most - matched)
        packing.add(seqs.filter((seq) => !left.has(seq)))
        first.push(...taken.slice(0, sample - first.length))
        matched += taken.length
      }
    }
    return { chunks: packing.end(), absent: await packAbsent(this.#absent), matched, first }
  }
}
