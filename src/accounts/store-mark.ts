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
  /** When the store had come so far, Unix milliseconds. */
  at: Type.Integer(),
})

type Mark = Static<typeof MarkSchema>

/** What the mark of a store is made of. */
export interface StoreMarkDeps {
  readonly store: Store
  readonly dataDir: string
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  readonly problems: Pick<Problems, 'report'>
}

/**
 * Remembers beside the store how far it had come, so that a store that goes back in time is noticed: one whose
 * write-ahead log was lost or cut off opens without a word, and so does an older copy. What was numbered within the last
 * seconds before a crash may be missing without being noticed.
 */
export class StoreMark implements Service {
  readonly name = 'store mark'
  readonly #deps: StoreMarkDeps
  #written: Mark | undefined
  #timer: Timer | undefined
  /** `new` also when the mark is to stay as it is. */
  #phase: 'new' | 'writing' | 'stopped' = 'new'
  #work: Promise<void> = Promise.resolve()

  constructor(deps: StoreMarkDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    const found = tryParseJson((await readFileIfThere(this.#path)) ?? '')
    // A mark that the store is behind stays, and is told at each start, until somebody deletes it.
    if (Value.Check(MarkSchema, found) && (await this.#isBehind(found))) return
    this.#phase = 'writing'
    this.#plan()
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

  #plan(): void {
    if (this.#phase !== 'writing') return
    this.#timer = this.#deps.clock.after(EVERY_MS, () => {
      this.#work = this.#write().finally(() => this.#plan())
    })
  }

  /** What is read here is on disk already, so the mark is never ahead of the store. */
  async #write(): Promise<void> {
    try {
      const numbers = await this.#deps.store.run(accounts.numbers, {})
      if (!numbers || isSame(numbers, this.#written)) return
      const mark = { ...numbers, at: this.#deps.clock.now() }
      await replaceFile(this.#path, `${JSON.stringify(mark)}\n`)
      this.#written = mark
    } catch (error) {
      if (this.#phase === 'writing') this.#deps.logger.warn({ error }, 'how far the store has come is not noted yet')
    }
  }
}

function isSame(one: accounts.StoreNumbers, other: Mark | undefined): boolean {
  return one.messages === other?.messages && one.runs === other.runs && one.acts === other.acts
}
