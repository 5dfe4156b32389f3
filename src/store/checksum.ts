import { crc32 } from 'node:zlib'
import { HomeportError } from '../contract/errors/errors.js'
import { type Transaction, tellDamage } from './operation.js'

/**
 * Checksums of what callers gave us to keep: CRC-32, computed where it is stored and compared whenever it is read. A bit
 * that flips on the disk changes nothing that the databases themselves would notice, and must never be delivered.
 */

/** The checksum of a content, for the column beside it; NULL where there is nothing to check. */
export function checksumOf(content: Uint8Array | string | null | undefined): number | null {
  return content ? crc32(content) : null
}

/** Whether a content is what was written. Without a checksum, as before schema step 25, nobody can tell. */
export function isIntact(content: Uint8Array | string | null, checksum: number | null): boolean {
  return checksum === null || (content !== null && crc32(content) === checksum)
}

/**
 * A content that is what was written.
 * @param what it is, for the operator, such as `the body of msg_1`.
 * @throws HomeportError `store_damaged` when it is not.
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

/** Tells of a content that is not what was written, for an operation that goes on without it. */
export function* tellChanged(table: string, what: string): Transaction<void> {
  yield* tellDamage({ table, found: changed(what) })
}

const changed = (what: string): string => `${what} is not what was written: its checksum differs`
