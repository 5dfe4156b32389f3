import { crc32 } from 'node:zlib'
import { HomeportError } from '../contract/errors/errors.js'
import { reportDamage, type Transaction } from './statement.js'

/**
 * Checksums of contents from callers: a CRC-32 is computed when the content is stored and compared whenever it is read.
 * Neither database would notice a bit that flips on the disk, and a changed content must never be delivered.
 */

/** The checksum of a content, for the column beside it; NULL without content. */
export function checksumOf(content: Uint8Array | string | null | undefined): number | null {
  return content ? crc32(content) : null
}

/** Whether a content is unchanged. Content without a checksum (stored before migration 25) counts as unchanged. */
export function isIntact(content: Uint8Array | string | null, checksum: number | null): boolean {
  return checksum === null || (content !== null && crc32(content) === checksum)
}

/**
 * Returns a content if it is unchanged.
 * @param what names it for the operator, such as `the body of msg_1`.
 * @throws HomeportError `store_damaged` if it has changed.
 */
export function intact<Content extends Uint8Array | string | null>(
  content: Content,
  checksum: number | null,
  table: string,
  what: () => string,
): Content {
  if (isIntact(content, checksum)) return content
  throw new HomeportError('store_damaged', { table, found: changed(what()) })
}

/** Reports a changed content, for a transaction that continues without it. */
export function* reportChanged(table: string, what: string): Transaction<void> {
  yield* reportDamage({ table, found: changed(what) })
}

const changed = (what: string): string => `${what} has changed since it was written: its checksum differs`
