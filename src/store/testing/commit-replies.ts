/** The length of the type byte and of the size that follows it. */
const HEADER_BYTES = 5
const COMMAND_COMPLETE = 'C'.charCodeAt(0)
const ROW_DESCRIPTION = 'T'.charCodeAt(0)
/** The result column of a SELECT that inserts rows and returns their numbers. */
const OF_INSERTS = 'new_seqs'
/** Tags of statements that change rows. */
const CHANGES = /^(?:INSERT 0|UPDATE|DELETE|MERGE) [1-9]/

/**
 * Reads what a PostgreSQL server sends over one connection, and finds the replies that confirm the commit of changed rows:
 * `COMMIT` after a change, or a change outside a transaction block.
 */
export class CommitReplies {
  #rest: Buffer = Buffer.alloc(0)
  #isEncrypted: boolean | undefined
  #isInTransaction = false
  #hasChanged = false
  /** Whether the next SELECT to complete inserts rows. */
  #isInsert = false

  /** Whether this chunk completes such a reply. */
  completedBy(chunk: Buffer): boolean {
    // A server that refuses TLS answers with a single letter before its first message.
    this.#isEncrypted ??= chunk.length === 1
    if (this.#isEncrypted && chunk.length === 1) return false
    this.#rest = Buffer.concat([this.#rest, chunk])
    let isFound = false
    while (this.#rest.length >= HEADER_BYTES) {
      const end = 1 + this.#rest.readUInt32BE(1)
      if (this.#rest.length < end) break
      if (this.#rest[0] === ROW_DESCRIPTION) this.#isInsert = this.#rest.subarray(0, end).includes(OF_INSERTS)
      if (this.#rest[0] === COMMAND_COMPLETE) {
        const tag = this.#rest.toString('latin1', HEADER_BYTES, end - 1)
        if (this.#isCommit(tag)) isFound = true
      }
      this.#rest = this.#rest.subarray(end)
    }
    return isFound
  }

  #isCommit(tag: string): boolean {
    const isChange = CHANGES.test(tag) || this.#isInsert
    this.#isInsert = false
    switch (tag) {
      case 'BEGIN':
        this.#isInTransaction = true
        this.#hasChanged = false
        return false
      case 'COMMIT':
        this.#isInTransaction = false
        return this.#hasChanged
      case 'ROLLBACK':
        this.#isInTransaction = false
        return false
      default:
        if (isChange) this.#hasChanged = true
        return isChange && !this.#isInTransaction
    }
  }
}
