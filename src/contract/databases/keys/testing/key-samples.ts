import type { Base64, StoredKey } from '../key-file.js'

/** Base64 of Node.js. */
export const base64: Base64 = {
  encode: (bytes) => Buffer.from(bytes).toString('base64'),
  decode: (text) => new Uint8Array(Buffer.from(text, 'base64')),
}

/** A key with a payload that no engine would load. */
export const keyOf = (name: string, expiresAtMs?: number): StoredKey => ({
  name,
  type: 'string',
  dump: 'AAE=',
  ...(expiresAtMs !== undefined && { expiresAtMs }),
})

/** All items of a stream. */
export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}
