import type { ReplyLimits } from '../../base/index.js'

const MIB = 2 ** 20

/** Bounds of the copy of another server, whatever that server sends. Times in milliseconds. */
export interface CopyLimits {
  /** Of one reply; engines take no value of more than 512 MiB. */
  readonly reply: ReplyLimits
  readonly connectMs: number
  /** How long a reply may take, and the next piece of a value. */
  readonly replyMs: number
  /** How long a whole value may take. */
  readonly valueMs: number
  /** How long the copy may take. */
  readonly totalMs: number
  /** Pages of a scan in a row that name no key. */
  readonly emptyPages: number
  /** Keys named are at most so many times what `DBSIZE` says, and `spareKeys` more: a scan may name a key twice. */
  readonly keysPerKey: number
  readonly spareKeys: number
  /** Bytes read are at most so many times what the database may hold, and `spareBytes` more. */
  readonly bytesPerByte: number
  readonly spareBytes: number
  /** Addresses of one name that are tried. */
  readonly addresses: number
}

/** The bounds of every import. docs/backups.md names them. */
export const COPY_LIMITS: CopyLimits = {
  reply: { depth: 4, elements: 50_000, replyBytes: 16 * MIB, valueBytes: 512 * MIB },
  connectMs: 10_000,
  replyMs: 60_000,
  valueMs: 15 * 60_000,
  totalMs: 24 * 3_600_000,
  emptyPages: 100_000,
  keysPerKey: 8,
  spareKeys: 100_000,
  bytesPerByte: 4,
  spareBytes: 64 * MIB,
  addresses: 8,
}
