import type { AppliedMigration } from '../migrations/index.js'
import type { Table } from './catalog.js'
import type { Batch, FaultyRow } from './rows.js'

/** Rows of a source that cannot be read because its pages are damaged. */
export interface Gap {
  readonly table: string
  /** The message of the database. */
  readonly found: string
  /** The first and last internal number of the gap. Undefined: no row before it, or none after it, can be read. */
  readonly from: number | undefined
  readonly to: number | undefined
}

/** Callbacks for damage that a reader finds in a table. */
export interface Findings {
  /** Called for rows that are skipped. */
  readonly onGap: (gap: Gap) => void
  /** Called for a text that is not valid UTF-8: it is copied as the server reads it. */
  readonly onRepaired: (table: string, column: string, row: number) => void
}

/** How a table is read. */
export interface Reading {
  /** Only rows after this position. */
  readonly after?: string | undefined
  /** `fixed`: the same order at each reading, so that reading can continue at a position. `any`: the fastest. */
  readonly order: 'fixed' | 'any'
  readonly findings?: Findings
}

/** A store from which rows are read: a source, or a target while it is verified. */
export interface CopyReader {
  /** The applied migrations; undefined without their table. */
  ledger(): Promise<readonly AppliedMigration[] | undefined>
  /** How the tables and columns differ from those of this version, in words. */
  schemaProblems(): Promise<readonly string[]>
  /** The id of the installation; undefined before the first start of a server. */
  installation(): Promise<string | undefined>
  /** Changes whenever somebody else changes the store. */
  fingerprint(): Promise<string>
  count(table: Table): Promise<number>
  /** Size of the store on its disk, bytes. */
  sizeBytes(): Promise<number>
  /** The highest number that a numbered table has assigned. */
  lastNumber(table: Table): Promise<number>
  /** Rows in batches of a bounded size. */
  rows(table: Table, reading: Reading): AsyncIterable<Batch>
  close(): Promise<void>
}

/** Notes on the progress of a copy, stored in its target by subject. */
export type Notes = readonly (readonly [subject: string, state: string])[]

/** A store into which rows are written. */
export interface CopyTarget {
  readonly reader: CopyReader
  /** Names of the tables that exist. */
  tableNames(): Promise<readonly string[]>
  /** The notes of an unfinished copy. */
  notes(): Promise<ReadonlyMap<string, string>>
  /** Runs statements and then writes notes, in one transaction. */
  change(statements: readonly string[], notes?: Notes): Promise<void>
  /**
   * Writes rows and notes in one transaction. `notesOf` is called before the commit, with the rows that the database has
   * refused, and returns the notes.
   */
  write(table: Table, batch: Batch, notesOf: (refused: readonly Refused[]) => Promise<Notes>): Promise<void>
  /** Statements that empty tables, the last of them first. */
  emptyStatements(tables: readonly Table[]): readonly string[]
  /** Makes a numbered table continue after this number. */
  setNumber(table: Table, last: number): Promise<void>
  /** Brings everything written to the disk, and prepares the store for its first start. */
  settle(): Promise<void>
  /** Types of columns, for migrations. */
  readonly types: import('../dialect.js').ColumnTypes
  close(): Promise<void>
}

/** A row that the target refused. */
export interface Refused extends FaultyRow {
  /** The row as it was sent. */
  readonly row: Buffer
}
