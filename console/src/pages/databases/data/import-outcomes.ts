/** The outcome of each key of an import: exact counts, the first keys of each outcome for the page, and all for a report. */
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import {
  IMPORT_OUTCOMES,
  type ImportedKey,
  type ImportOutcome,
} from '../../../../../src/contract/databases/keys/key-transfer.js'
import { shownName } from './shown-name.js'

/** Most keys of each outcome that the page lists; the report has all of them. */
export const MAX_SHOWN_OUTCOMES = 2_000

/** Gathers the outcomes of an import. `onLine` gets a line of JSON for each key. */
export class ImportOutcomes {
  readonly #counts = new Map<ImportOutcome, number>()
  readonly #first = new Map<ImportOutcome, ImportedKey[]>()
  readonly #onLine: (line: string) => void

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  add(key: ImportedKey): void {
    this.#counts.set(key.outcome, this.count(key.outcome) + 1)
    const first = this.#first.get(key.outcome) ?? []
    if (first.length < MAX_SHOWN_OUTCOMES) first.push(key)
    this.#first.set(key.outcome, first)
    this.#onLine(`${JSON.stringify({ ...key, ...(key.name !== undefined && { name: shownName(key.name) }) })}\n`)
  }

  count(outcome: ImportOutcome): number {
    return this.#counts.get(outcome) ?? 0
  }

  /** All keys so far. */
  get total(): number {
    return IMPORT_OUTCOMES.reduce((sum, outcome) => sum + this.count(outcome), 0)
  }

  /** The first keys of an outcome. */
  of(outcome: ImportOutcome): readonly ImportedKey[] {
    return this.#first.get(outcome) ?? []
  }
}

/** A key of an outcome as text: its name, or its line number if the name is unreadable. */
export const importedText = ({ name, line }: { readonly name?: KeyName; readonly line: number }): string =>
  name === undefined ? `line ${line}` : shownName(name)
