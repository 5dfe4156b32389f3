/**
 * A file that the page writes piece by piece. Its text goes into blobs of some megabytes, which browsers move to the disk
 * if there are many. Only the newest blob is surely in memory.
 */

/** Characters of a blob. */
const PART = 4 * 2 ** 20

/** Text for a file that the browser saves. */
export class SavedFile {
  readonly #parts: Blob[] = []
  #newest: string[] = []
  #length = 0

  add(text: string): void {
    this.#newest.push(text)
    this.#length += text.length
    if (this.#length >= PART) this.#close()
  }

  /** Saves everything so far as a file of the user. */
  save(name: string): void {
    this.#close()
    const url = URL.createObjectURL(new Blob(this.#parts, { type: 'application/x-ndjson' }))
    const link = document.createElement('a')
    link.href = url
    link.download = name
    link.click()
    // The download has begun by then. The browser finishes a download even after the URL of its blob was revoked.
    setTimeout(() => URL.revokeObjectURL(url), 60_000)
  }

  #close(): void {
    if (this.#length > 0) this.#parts.push(new Blob(this.#newest))
    this.#newest = []
    this.#length = 0
  }
}

/** The name of a file of the database's keys: `shop-keys-2026-11-28.jsonl`. */
export const fileName = (database: string, what: string, now: Date): string =>
  `${database.replace(/[^\w.-]+/g, '-')}-${what}-${now.toISOString().slice(0, 10)}.jsonl`
