import type { Clock } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as usage from '../transactions/usage.js'
import type { DatabaseBook } from './book.js'

/** Databases that are written down in one transaction. */
const BOOKS_AT_ONCE = 500

/** What writing works with. */
export interface WriterParts {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
}

/** Writes down what books have collected, one transaction after the other. */
export class Writer {
  readonly #parts: WriterParts
  readonly #books: () => Iterable<DatabaseBook>
  #writing: Promise<void> = Promise.resolve()
  #version = 0
  /** When the meters were last read; decides which stretch of time samples belong to. */
  collectedAt = 0

  constructor(parts: WriterParts, books: () => Iterable<DatabaseBook>) {
    this.#parts = parts
    this.#books = books
  }

  /** Grows whenever something is taken from the books to be written. */
  get version(): number {
    return this.#version
  }

  /** Waits until nothing is being written; answers the version of that moment. */
  async settled(): Promise<number> {
    await this.#writing.catch(() => undefined)
    return this.#version
  }

  /** Writes everything that has been collected. Rejects when that does not succeed; then it is still there. */
  write(): Promise<void> {
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#writeAll())
    return this.#writing
  }

  /** Begins to write; what fails is written with what comes next. */
  writeSoon(): void {
    this.write().catch((error: unknown) => this.#parts.logger.warn({ error }, 'usage is not written down yet'))
  }

  async #writeAll(): Promise<void> {
    const books = [...this.#books()].filter((book) => !book.pending.isEmpty)
    for (let at = 0; at < books.length; at += BOOKS_AT_ONCE) await this.#writeSome(books.slice(at, at + BOOKS_AT_ONCE))
  }

  async #writeSome(books: readonly DatabaseBook[]): Promise<void> {
    const { FIRST_TIER_MS, add } = usage
    const lastMoment = (this.collectedAt || this.#parts.clock.now()) - 1
    const taken = books.map((book) => ({ book, news: book.take() }))
    this.#version++
    try {
      const start = lastMoment - (lastMoment % FIRST_TIER_MS)
      await this.#parts.store.run(add, { start, news: taken.map(({ news }) => news) })
    } catch (error) {
      // What may have been written is not written again: nothing is ever charged twice.
      const mayBeWritten = isError(error, 'store_outcome_unknown')
      if (!mayBeWritten) for (const { book, news } of taken) book.pending.giveBack(news)
      throw error
    }
  }
}
