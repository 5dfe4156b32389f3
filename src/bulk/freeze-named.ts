import { operations, type Store } from '../store/index.js'
import { Ascending } from './ascending.js'
import { type Bounds, chunksInTurns, type FixedSet, parts } from './fixed-set.js'

/** Fixing a set that is given by ids. Of a list of hundreds of thousands nobody ever holds more than a page as texts. */

type NamedRuns = operations.bulkNamed.NamedRuns

/** Selects the runs that pages of ids name. An id may come more than once. */
export async function fixNamed(store: Store, bounds: Bounds, pages: readonly (readonly string[])[]): Promise<FixedSet> {
  const { accountId, bound } = bounds
  const found = new Found()
  await eachPage(
    pages,
    (ids) => store.run(operations.bulkNamed.selectNamed, { accountId, ids, bound }),
    (page) => found.add(page),
  )
  return found.fix(store, bounds)
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
  const { accountId, bound } = bounds
  const found = new Found()
  let isPlain = true
  const ask = (piece: Uint8Array) => {
    // A copy: the whole of what a piece is cut from would go along to the store.
    const elements = new Uint8Array(piece)
    return store.run(operations.bulkNamed.selectSent, { accountId, elements, bound })
  }
  await eachPage(pieces, ask, (page) => {
    if (page) found.add(page)
    else isPlain = false
  })
  return isPlain ? { set: await found.fix(store, bounds), given: found.given } : undefined
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
    // Whoever goes on waits for it; when the one before fails, nobody does.
    asked.catch(() => undefined)
    if (before) take(await before)
    before = asked
  }
  if (before) take(await before)
}

/** What has been found so far. */
class Found {
  readonly #unfinished = new Ascending()
  readonly #finished = new Ascending()
  readonly #absent = new Set<string>()
  #given = 0

  add({ unfinished, finished, absent, given }: NamedRuns): void {
    this.#unfinished.add(unfinished)
    this.#finished.add(finished)
    for (const id of absent) this.#absent.add(id)
    this.#given += given
  }

  get given(): number {
    return this.#given
  }

  async fix(store: Store, { most, sample }: Bounds): Promise<FixedSet> {
    const oldest = await this.#unfinished.take(most)
    const all = this.#finished.isEmpty ? oldest : await this.#with(oldest)
    return {
      chunks: await chunksInTurns(all),
      absent: parts([...this.#absent]),
      matched: oldest.length,
      sample: await store.run(operations.bulkSelect.idsOf, { seqs: oldest.slice(0, sample) }),
    }
  }

  /** A run may have ended between two pages that name it. */
  async #with(oldest: readonly number[]): Promise<number[]> {
    const all = new Ascending()
    all.add(await this.#finished.take())
    all.add(oldest)
    return all.take()
  }
}
