import { operations, type Store } from '../store/index.js'
import { Ascending } from './ascending.js'
import { type Bounds, type FixedSet, Packing, parts } from './fixed-set.js'

/**
 * Fixing a set that is given by ids. Of a list of hundreds of thousands nobody ever holds more than a page as texts.
 */

type NamedRuns = operations.bulkNamed.NamedRuns

/** Selects the runs that pages of ids name. An id may come more than once. */
export async function fixNamed(store: Store, bounds: Bounds, pages: readonly (readonly string[])[]): Promise<FixedSet> {
  const shared = sharedArgs(bounds)
  const found = new Found()
  await eachPage(
    pages,
    (ids) => store.run(operations.bulkNamed.selectNamed, { ids, ...shared }),
    (page) => found.add(page),
  )
  return found.fix(bounds)
}

/** A fixed set, and how many ids were given for it. */
export interface SentSet {
  readonly set: FixedSet
  readonly given: number
}

/** The same for ids as they were sent, in pieces; `undefined` when these are no ids, and nothing is to be done. */
export async function fixSent(
  store: Store,
  bounds: Bounds,
  pieces: readonly Uint8Array[],
): Promise<SentSet | undefined> {
  const shared = sharedArgs(bounds)
  const found = new Found()
  let isPlain = true
  const ask = (piece: Uint8Array) => {
    // A copy: the whole of what a piece is cut from would go along to the store.
    const elements = new Uint8Array(piece)
    return store.run(operations.bulkNamed.selectSent, { elements, ...shared })
  }
  await eachPage(pieces, ask, (page) => {
    if (page) found.add(page)
    else isPlain = false
  })
  return isPlain ? { set: await found.fix(bounds), given: found.given } : undefined
}

/** The outcome of a run is decided when its turn comes, unless a limit asks for unfinished runs only. */
function sharedArgs({ accountId, bound, most, sample }: Bounds): Omit<operations.bulkNamed.NamedArgs, 'ids'> {
  return { accountId, bound, wanted: most === undefined && sample === 0 ? 'all' : 'unfinished' }
}

/** Goes through pages in order. The next one is asked for before the last is answered: nothing idles between them. */
async function eachPage<Page, Answer>(
  pages: readonly Page[],
  ask: (page: Page) => Promise<Answer>,
  take: (answer: Answer) => void,
): Promise<void> {
  let before: Promise<Answer> | undefined
  for (const page of pages) {
    const asked = ask(page)
    // The next step awaits it; when the one before fails, nothing does.
    asked.catch(() => undefined)
    if (before) take(await before)
    before = asked
  }
  if (before) take(await before)
}

/** What has been found so far. */
class Found {
  readonly #wanted = new Ascending()
  readonly #ended = new Ascending()
  readonly #absent = new Set<string>()
  #given = 0

  add({ found, ended, absent, given }: NamedRuns): void {
    this.#wanted.add(found)
    this.#ended.add(ended)
    for (const id of absent) this.#absent.add(id)
    this.#given += given
  }

  get given(): number {
    return this.#given
  }

  async fix({ most = Number.POSITIVE_INFINITY, sample }: Bounds): Promise<FixedSet> {
    const packing = new Packing()
    // A run may have ended between two pages that name it: then all have to be put in order together.
    const all = this.#ended.isEmpty ? packing : this.#ended
    const first: number[] = []
    let matched = 0
    for await (const seqs of this.#wanted.sorted()) {
      const taken = seqs.slice(0, most - matched)
      all.add(taken)
      first.push(...taken.slice(0, sample - first.length))
      matched += taken.length
      if (matched >= most) break
    }
    for await (const seqs of this.#ended.sorted()) packing.add(seqs)
    return { chunks: packing.end(), absent: parts([...this.#absent]), matched, first }
  }
}
