import { Readable } from 'node:stream'
import type { Clock, Timer } from '../../base/index.js'
import { type Reply, reply } from '../../http/index.js'

/**
 * Content read at once, of which a client that does not read keeps two pages in memory. A larger item makes a page of its
 * own.
 */
export const PAGE = { bytes: 2 ** 20, items: 1_000 }
/** A client that takes nothing for this long is disconnected: others of its account wait for their turn. */
const STALLED_MS = 2 * 60_000

/**
 * Answers a list of any size as one JSON array: at once if it is one page, otherwise page by page while the client reads.
 * Most failures of the store show in the first pages, when the reply can still have an error status.
 */
export async function longList<Item>(clock: Clock, pages: AsyncIterator<Item[]>): Promise<Item[] | Reply> {
  const first = await nextPage(pages)
  const second = first && (await nextPage(pages))
  if (!second) return first ?? []
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  const begun = `[${textOf(first)},${textOf(second)}`
  const body = Readable.from(texts(begun, pages, () => clock.after(STALLED_MS, () => body.destroy())))
  return reply(200, body, headers)
}

/** No page is kept while the client reads. */
async function* texts<Item>(begun: string, pages: AsyncIterator<Item[]>, watch: () => Timer): AsyncGenerator<string> {
  for (let text: string | undefined = begun; text !== undefined; text = await nextText(pages)) {
    const timer = watch()
    try {
      yield text
    } finally {
      timer.cancel()
    }
  }
  yield ']'
}

async function nextText<Item>(pages: AsyncIterator<Item[]>): Promise<string | undefined> {
  const page = await nextPage(pages)
  return page && `,${textOf(page)}`
}

/** A page may be empty, because its items have been deleted. */
async function nextPage<Item>(pages: AsyncIterator<Item[]>): Promise<Item[] | undefined> {
  for (;;) {
    const next = await pages.next()
    if (next.done) return undefined
    if (next.value.length > 0) return next.value
  }
}

const textOf = <Item>(items: readonly Item[]): string => items.map((item) => JSON.stringify(item)).join(',')
