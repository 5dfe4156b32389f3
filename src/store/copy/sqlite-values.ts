import { firstColumn, type SqliteDatabase } from '../../base/index.js'
import type { Table } from './catalog.js'
import type { FaultyRow, Value } from './rows.js'

/** Finds values that reading a row the fast way would change or hide: SQLite stores any type in any column. */

const NUL = '\0'
/** The driver returns this character in place of bytes that are not valid UTF-8. A text may also contain it. */
const REPLACEMENT = '\ufffd'

/** Whether all values of a row have the types of their columns, and are certainly returned as they are stored. */
export function isPlain({ columns }: Table, values: readonly Value[]): boolean {
  for (let index = 0; index < columns.length; index++) {
    const value = values[index]
    if (value === null) continue
    const type = columns[index]?.type
    if (type === 'integer' ? !Number.isSafeInteger(value) : type === 'text' ? !isPlainText(value) : !isBytes(value)) {
      return false
    }
  }
  return true
}

const isPlainText = (value: unknown): boolean =>
  typeof value === 'string' && !value.includes(NUL) && !value.includes(REPLACEMENT)

const isBytes = (value: unknown): boolean => value instanceof Uint8Array

/**
 * An SQL expression that is 1 if a text of the row contains U+0000; undefined when the driver returns such texts whole.
 * Node 22's driver cuts a text there.
 */
export function nulColumn(db: SqliteDatabase, { columns }: Table): string | undefined {
  const [seen] = firstColumn([db.prepare("SELECT CAST(x'610062' AS TEXT)").get()])
  if (seen === `a${NUL}b`) return undefined
  const texts = columns.filter(({ type }) => type === 'text')
  return texts.map(({ name }) => `instr(CAST("${name}" AS BLOB), x'00') > 0`).join(' OR ') || undefined
}

/** Result of `inspectRow`. */
export type Inspected =
  | {
      readonly kind: 'good'
      readonly values: readonly Value[]
      /** Columns with texts that are not valid UTF-8; their values are as the driver returns them. */
      readonly repaired: readonly string[]
    }
  | ({ readonly kind: 'faulty' } & FaultyRow)

/** Reads one row with the exact type and bytes of each value. */
export function inspectRow(db: SqliteDatabase, table: Table, number: number): Inspected {
  const parts = table.columns.map(({ name }, index) => {
    const exact = `CASE typeof("${name}") WHEN 'integer' THEN CAST("${name}" AS TEXT) WHEN 'text' THEN CAST("${name}" AS BLOB) ELSE "${name}" END`
    return `typeof("${name}") AS t${index}, ${exact} AS v${index}`
  })
  const text = `SELECT ${parts.join(', ')} FROM ${table.name} WHERE rowid = ?`
  const found = db.prepare(text).get(number) as Record<string, unknown>
  const cells = table.columns.map((column, index) => {
    const stored = String(found[`t${index}`])
    const exact = found[`v${index}`] as string | Uint8Array | number | null
    // Node 22's driver cuts a text at U+0000.
    const seen = stored === 'text' && exact instanceof Uint8Array ? Buffer.from(exact).toString('utf8') : null
    return { ...column, stored, exact, seen }
  })
  const wrong = cells.map((cell) => ({ name: cell.name, problem: problemOf(cell) })).find(({ problem }) => problem)
  if (wrong) {
    const values = Object.fromEntries(cells.map((cell) => [cell.name, shownOf(cell)]))
    return { kind: 'faulty', reason: `the column ${wrong.name} holds ${wrong.problem}`, values }
  }
  const repaired = cells.filter((cell) => cell.seen !== null && !isAsSeen(cell)).map(({ name }) => name)
  return { kind: 'good', values: cells.map(cellValue), repaired }
}

interface Cell {
  readonly type: string
  /** SQLite's type of the value, which may differ from that of the column. */
  readonly stored: string
  readonly exact: string | Uint8Array | number | null
  /** A text as the server reads it; null for other values. */
  readonly seen: string | null
}

const STORED: Readonly<Record<string, string>> = { integer: 'integer', text: 'text', bytes: 'blob' }

function problemOf({ type, stored, seen }: Cell): string | undefined {
  if (stored !== 'null' && stored !== STORED[type]) return `a value of the type ${stored}, which it never should`
  return seen?.includes(NUL) ? 'the character U+0000, which PostgreSQL does not store' : undefined
}

function cellValue({ stored, exact, seen }: Cell): Value {
  if (seen !== null) return seen
  if (stored !== 'integer') return exact
  const number = Number(exact)
  return Number.isSafeInteger(number) ? number : BigInt(String(exact))
}

const isAsSeen = ({ exact, seen }: Cell): boolean =>
  exact instanceof Uint8Array && Buffer.from(seen ?? '', 'utf8').equals(exact)

/** The value to report: the bytes of a text that is not valid UTF-8. */
const shownOf = (cell: Cell): Value => (cell.seen !== null && !isAsSeen(cell) ? cell.exact : cellValue(cell))
