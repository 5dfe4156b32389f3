import { CONTENTS } from '../check.js'
import { isIntact } from '../checksum.js'
import type { Table } from './catalog.js'
import { type Batch, Digest, fieldsOf, integerIn, rowOf } from './rows.js'
import type { Findings, Gap } from './types.js'

/** The most examples that a report names; others are only counted. */
const MAX_NAMED = 20

/** Damage found in a source. A copy neither repairs nor hides it. */
export interface Damage {
  /** Rows that cannot be read, so they are not in the target. */
  readonly gaps: readonly Gap[]
  /** Rows that the target cannot hold: the copy writes them to a file in the data directory instead. */
  readonly setAside: number
  /** Contents that differ from their checksum; copied as they are, so the server refuses them as before. */
  readonly changed: number
  /** Texts that are not valid UTF-8; copied as the server reads them. */
  readonly repaired: number
  /** Commits that cannot be read, in words. */
  readonly lost: readonly string[]
  /** The first of all these, in words. */
  readonly examples: readonly string[]
}

/** Collects digests and damage while all tables of a source are read. */
export class Audit {
  readonly digests = new Map<Table, Digest>()
  readonly gaps: Gap[] = []
  changed = 0
  repaired = 0
  readonly examples: string[] = []

  /** Callbacks for a reader while it reads a table. */
  readonly findings: Findings = {
    onGap: (gap) => {
      this.gaps.push(gap)
      this.#example(
        `${gap.table}: rows ${gap.from ?? 'from the first'} to ${gap.to ?? 'the last'} cannot be read: ${gap.found}`,
      )
    },
    onRepaired: (table, column, row) => {
      this.repaired++
      this.#example(`${table}: the ${column} of row ${row} is not valid UTF-8`)
    },
  }

  /** Begins with the first row of a table. */
  begin(table: Table): void {
    this.digests.set(table, new Digest())
  }

  /** Adds rows of a table. */
  add(table: Table, batch: Batch): void {
    this.digests.get(table)?.addAll(batch)
    for (const [name, content, crc, key] of CONTENTS) {
      if (name === table.name) this.#compare(table, batch, { content, crc, key })
    }
  }

  #compare(
    table: Table,
    batch: Batch,
    columns: { readonly content: string; readonly crc: string; readonly key: string },
  ) {
    const at = (column: string): number => table.columns.findIndex(({ name }) => name === column)
    const [content, crc, key] = [at(columns.content), at(columns.crc), at(columns.key)]
    for (let index = 0; index < batch.starts.length; index++) {
      const fields = fieldsOf(rowOf(batch, index))
      const sum = fields[crc]
      if (!sum || isIntact(fields[content] ?? null, Number(integerIn(sum)))) continue
      this.changed++
      this.#example(
        `${table.name}: the ${columns.content} of ${fields[key]?.toString('utf8')} differs from its checksum`,
      )
    }
  }

  #example(text: string): void {
    if (this.examples.length < MAX_NAMED) this.examples.push(text)
  }
}
