import { Readable } from 'node:stream'
import { type Clock, charactersIn, type Timer, TimeSlice } from '../../base/index.js'
import { jsonPieces, type Reply, reply } from '../../http/index.js'

/**
 * Content read at once, of which a client that does not read keeps two pages in memory. A larger item makes a page of its
 * own.
 */
export const PAGE = { bytes: 2 ** 20, items: 1_000 }
/** Characters that are written at once. */
const TEXT_CHARACTERS = 262_144
/** A client that takes nothing for this long is disconnected: others of its account wait for their turn. */
const STALLED_MS = 2 * 60_000

/**
 * Answers a list of any size as one JSON array: at once if it is one page, otherwise page by page while the client reads.
 * Most failures of the store show in the first pages, when the reply can still have an error status.
 */
export async function longList<Item>(clock: Clock, pages: AsyncIterator<Item[]>): Promise<Item[] | Reply> {
  const first = await nextPage(pages)
  const second = first && (await nextPage(pages))
  if (!second && charactersIn(first) <= PAGE.bytes) return first ?? []
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  const begun = [first ?? [], second ?? []]
  const body = Readable.from(texts(begun, pages, () => clock.after(STALLED_MS, () => body.destroy())))
  return reply(200, body, headers)
}

/** No page is kept while the client reads. */
async function* texts<Item>(begun: Item[][], pages: AsyncIterator<Item[]>, watch: () => Timer): AsyncGenerator<string> {
  let before = '['
  for (let page = begun.shift(); page !== undefined; page = begun.shift() ?? (await nextPage(pages))) {
    for await (const text of textsOf(page, before)) {
      const timer = watch()
      try {
        yield text
      } finally {
        timer.cancel()
      }
    }
    before = ','
  }
  yield ']'
}

/** The items of a page in texts that are not too long for one turn of the event loop. */
async function* textsOf(items: readonly unknown[], before: string): AsyncGenerator<string> {
  const slice = new TimeSlice()
  let text = ''
  let separator = before
  for (const item of items) {
    text += separator
    separator = ','
    for (const piece of jsonPieces(item)) {
      text += piece
      if (text.length < TEXT_CHARACTERS) continue
      yield text
      text = ''
      if (slice.isOver) await slice.rest()
    }
  }
  if (text !== '') yield text
}

/** A page may be empty, because its items have been deleted. */
async function nextPage<Item>(pages: AsyncIterator<Item[]>): Promise<Item[] | undefined> {
  for (;;) {
    const next = await pages.next()
    if (next.done) return undefined
    if (next.value.length > 0) return next.value
  }
}
