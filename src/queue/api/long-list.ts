import { Readable } from 'node:stream'
import { type Clock, charactersIn, type Timer, TimeSlice } from '../../base/index.js'
import { jsonPieces, type Reply, reply } from '../../http/index.js'

/**
 * Limits of one page. For a client that does not read its reply, at most two pages are in
 * memory. A larger item makes a page of its own.
 */
export const PAGE = { bytes: 2 ** 20, items: 1_000 }
/** Characters that are written at once. */
const TEXT_CHARACTERS = 262_144
/** A client that reads nothing for this long is disconnected, because other requests of its account wait for their turn. */
const STALLED_MS = 2 * 60_000

/**
 * Replies with a list of any size as one JSON array: at once if it is one page, otherwise page by
 * page while the client reads. The first two pages are read before the reply begins. Most failures
 * of the store show there, as an error status.
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

/** The text of the array, page by page. Pages that were written are not kept. `watch` limits how long a write may wait. */
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

/** The items of a page as texts, each short enough for one turn of the event loop. */
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

/** The next page that is not empty; `undefined` at the end. A page is empty if its items were deleted meanwhile. */
async function nextPage<Item>(pages: AsyncIterator<Item[]>): Promise<Item[] | undefined> {
  for (;;) {
    const next = await pages.next()
    if (next.done) return undefined
    if (next.value.length > 0) return next.value
  }
}
