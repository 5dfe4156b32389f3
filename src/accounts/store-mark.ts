import { join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { type Clock, readFileIfThere, replaceFile, type Service, type Timer, tryParseJson } from '../base/index.js'
import type { Store } from '../store/index.js'
import type { Logger, Problems } from '../telemetry/index.js'
import * as accounts from './transactions/accounts.js'

const FILE = 'store-mark'
const EVERY_MS = 10_000

const MarkSchema = Type.Object({
  messages: Type.Integer(),
  runs: Type.Integer(),
  acts: Type.Integer(),
  /** When these numbers were read, Unix milliseconds. */
  at: Type.Integer(),
})

type Mark = Static<typeof MarkSchema>

/** What `StoreMark` is built from. */
export interface StoreMarkDeps {
  readonly store: Store
  readonly dataDir: string
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  readonly problems: Pick<Problems, 'report'>
}

/**
 * Writes the highest sequence numbers of the store to a file in the data directory, to notice at the next start that the
 * store has lost commits. A store whose write-ahead log was lost or cut, or an older copy of a store, opens without an
 * error. The file is up to 10 s old, so losses of the last seconds before a crash may go unnoticed.
 */
export class StoreMark implements Service {
  readonly name = 'store mark'
  readonly #deps: StoreMarkDeps
  #written: Mark | undefined
  #timer: Timer | undefined
  /** Stays `new` if the file must not be overwritten. */
  #phase: 'new' | 'writing' | 'stopped' = 'new'
  #work: Promise<void> = Promise.resolve()

  constructor(deps: StoreMarkDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    const found = tryParseJson((await readFileIfThere(this.#path)) ?? '')
    // While the store is behind its mark, each start reports the problem and keeps the
    // mark, until the operator deletes the file.
    if (Value.Check(MarkSchema, found) && (await this.#isBehind(found))) return
    this.#phase = 'writing'
    this.#schedule()
  }

  async stop(): Promise<void> {
    const before = this.#phase
    this.#phase = 'stopped'
    this.#timer?.cancel()
    await this.#work
    if (before === 'writing') await this.#write()
  }

  get #path(): string {
    return join(this.#deps.dataDir, FILE)
  }

  async #isBehind(mark: Mark): Promise<boolean> {
    const now = await this.#deps.store.run(accounts.numbers, {})
    const missing = [
      [mark.messages - (now?.messages ?? 0), 'messages'],
      [mark.runs - (now?.runs ?? 0), 'workflow runs'],
      [mark.acts - (now?.acts ?? 0), 'entries of the audit log'],
    ] as const
    const lost = missing.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
    if (lost.length === 0) return false
    this.#deps.problems.report({
      kind: 'store_damaged',
      subject: 'lost changes',
      severity: 'error',
      title: `The store is older than it was at ${new Date(mark.at).toISOString()}: at least ${lost.join(', ')} are missing.`,
      advice:
        'Its write-ahead log was lost, or an older copy was put in its place: see "A damaged store" in docs/operations.md. Delete the file store-mark of the data directory to go on with it.',
    })
    return true
  }

  #schedule(): void {
    if (this.#phase !== 'writing') return
    this.#timer = this.#deps.clock.after(EVERY_MS, () => {
      this.#work = this.#write().finally(() => this.#schedule())
    })
  }

  /** Writes the mark. The numbers that it reads are committed, so the mark is never ahead of the store. */
  async #write(): Promise<void> {
    try {
      const numbers = await this.#deps.store.run(accounts.numbers, {})
      if (!numbers || isSame(numbers, this.#written)) return
      const mark = { ...numbers, at: this.#deps.clock.now() }
      await replaceFile(this.#path, `${JSON.stringify(mark)}\n`)
      this.#written = mark
    } catch (error) {
      if (this.#phase === 'writing') this.#deps.logger.warn('store_mark_not_written', { error })
    }
  }
}

function isSame(one: accounts.StoreNumbers, other: Mark | undefined): boolean {
  return one.messages === other?.messages && one.runs === other.runs && one.acts === other.acts
}
