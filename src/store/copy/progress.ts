import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { tryParseJson } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { ledgerStatement, UNFINISHED_COPY } from '../migrations/index.js'
import type { Table } from './catalog.js'
import type { CopyTarget, Notes } from './types.js'

/**
 * The progress of an unfinished copy, stored in the target: in a separate table, written in the same transactions as the
 * rows. Meanwhile a mark in the record of migrations keeps servers from opening the target.
 */

const HeaderSchema = Type.Object({
  /** Version of these notes. */
  format: Type.Literal(1),
  installation: Type.String(),
  from: Type.String(),
  fingerprint: Type.String(),
  migrations: Type.Array(Type.Integer()),
  startedAt: Type.Integer(),
  /** The comparison at the end found a difference, so the next run starts over. */
  differs: Type.Boolean(),
})

/** The source of an unfinished copy, and its state. */
export type CopyHeader = Static<typeof HeaderSchema>

const TableNoteSchema = Type.Object({
  /** Position of the last row that was copied. */
  cursor: Type.Optional(Type.String()),
  copied: Type.Integer(),
  /** Rows that the target refused. */
  refused: Type.Object({ rows: Type.Integer(), hex: Type.String() }),
  /** Rows whose values the other database would change. */
  faulty: Type.Integer(),
  isDone: Type.Boolean(),
})

/** How far a table has been copied. */
export type TableNote = Static<typeof TableNoteSchema>

/** Note of a table before its first row is copied. */
export const UNTOUCHED: TableNote = {
  copied: 0,
  refused: { rows: 0, hex: '0'.repeat(64) },
  faulty: 0,
  isDone: false,
}

/** Subject of the header; other subjects are names of tables. */
const HEADER = ''

/** The header as a note. */
export const headerNote = (header: CopyHeader): Notes => [[HEADER, JSON.stringify(header)]]

/** The progress of a table as a note. */
export const tableNote = ({ name }: Table, note: TableNote): Notes => [[name, JSON.stringify(note)]]

/** The header of an unfinished copy; undefined if it is of another version. */
export function headerIn(notes: ReadonlyMap<string, string>): CopyHeader | undefined {
  const found: unknown = tryParseJson(notes.get(HEADER) ?? '')
  return Value.Check(HeaderSchema, found) ? found : undefined
}

/** How far each table has been copied. */
export function progressIn(notes: ReadonlyMap<string, string>, tables: readonly Table[]): Map<Table, TableNote> {
  return new Map(tables.map((table) => [table, noteIn(notes.get(table.name))]))
}

function noteIn(text: string | undefined): TableNote {
  if (text === undefined) return UNTOUCHED
  const found: unknown = tryParseJson(text)
  if (Value.Check(TableNoteSchema, found)) return found
  throw new HomeportError('store_copy_stopped', { reason: 'the notes of the copy in the target cannot be read' })
}

/** Statements that mark a store as an unfinished copy, before anything else is written. */
export function markStatements({ types }: CopyTarget): string[] {
  const { number, name, breaking } = UNFINISHED_COPY
  return [
    ledgerStatement(types),
    `INSERT INTO schema_migrations (number, name, breaking, applied_at) VALUES (${number}, '${name}', ${breaking}, 0)`,
    `CREATE TABLE store_copy (subject ${types.text} PRIMARY KEY, state ${types.text} NOT NULL)`,
  ]
}

/** Statements that make a complete copy usable. */
export const unmarkStatements: readonly string[] = [
  `DELETE FROM schema_migrations WHERE number = ${UNFINISHED_COPY.number}`,
  'DROP TABLE store_copy',
]
