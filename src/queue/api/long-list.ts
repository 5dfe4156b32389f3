import { Readable } from 'node:stream'
import { type Reply, reply } from '../../http/index.js'

/** Characters that are sent at once. */
const CHUNK = 64 * 1024

/**
 * Answers a list of any size as one JSON array: at once if it is one page, otherwise page by page while the client reads.
 * Most failures of the store show in the first page, when the reply can still have an error status.
 */
export async function longList<Item>(pages: AsyncIterator<readonly Item[]>): Promise<Item[] | Reply> {
  const first = await pages.next()
  const second = await pages.next()
  const items: readonly Item[] = first.done ? [] : first.value
  if (second.done) return [...items]
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  return reply(200, Readable.from(texts([items, second.value], pages)), headers)
}

async function* texts<Item>(
  read: readonly (readonly Item[])[],
  pages: AsyncIterator<readonly Item[]>,
): AsyncGenerator<string> {
  let text = '['
  let before = ''
  for await (const page of joined(read, pages)) {
    for (const item of page) {
      text += before + JSON.stringify(item)
      before = ','
      if (text.length < CHUNK) continue
      yield text
      text = ''
    }
  }
  yield `${text}]`
}

async function* joined<Page>(read: readonly Page[], pages: AsyncIterator<Page>): AsyncGenerator<Page> {
  yield* read
  for (let next = await pages.next(); !next.done; next = await pages.next()) yield next.value
}
