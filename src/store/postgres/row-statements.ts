/** Statements over rows: one of each table, whose parameters are arrays, for any number of rows. */

import type { Tables } from '../schema/index.js'
import type { Statement } from '../statement.js'
import { BYTEA, INT8, TEXT } from './binary-array.js'
import type { Answer } from './described.js'
import type { Pipeline } from './pipeline.js'
import { type EncodedRows, encodeRows, encodeShared, type RowType } from './rows.js'

/** Builds the text of a statement over rows, from their columns and their source. */
type TextOf = (columns: readonly string[], source: RowSource) => string

/** Where a statement reads rows from, in SQL. */
interface RowSource {
  /** The value of a column. */
  readonly of: (column: string) => string
  readonly from: string
}

/** Reads rows from the only parameter. */
const oneParameter = (table: keyof Tables): RowSource => ({
  of: (column) => column,
  from: `unnest($1::${table}[])`,
})

const ARRAY_OF = { [INT8]: 'bigint[]', [TEXT]: 'text[]', [BYTEA]: 'bytea[]' } as const

/** Reads rows of which many share most values; see `SharedRows`. It reads run after run, so rows keep their order. */
function sharedParameters(table: keyof Tables, { columns }: RowType, each: readonly string[]): RowSource {
  const types = each.map((name) => ARRAY_OF[columns.find((column) => column.name === name)?.type ?? TEXT])
  const values = types.map((type, index) => `unnest(($${index + 4}::${type})[r._first:r._last])`)
  const runs = `unnest($1::${table}[]), unnest($2::bigint[]), unnest($3::bigint[])`
  const names = [...columns.map(({ name }) => name), '_first', '_last'].join(', ')
  return {
    of: (column) => (each.includes(column) ? `e.${column}` : `r.${column}`),
    from: `ROWS FROM (${runs}) AS r(${names}), ROWS FROM (${values.join(', ')}) AS e(${each.join(', ')})`,
  }
}

const insertInto =
  (table: keyof Tables, ending = ''): TextOf =>
  (columns, { of, from }) =>
    `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${columns.map(of).join(', ')} FROM ${from}${ending}`

/** Inserts rows. Resolves once the statements are sent, without waiting for their results. */
export const insertRows = (pipeline: Pipeline, table: keyof Tables, rows: readonly object[]) =>
  writeRows(pipeline, table, rows, insertInto(table))

/**
 * Sends statements over rows, one for all that fit into it, without waiting for their results. Only the first statement
 * over a table waits: for the row type.
 */
function writeRows(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  textOf: TextOf,
  each?: readonly string[],
): Promise<Answer>[] | Promise<Promise<Answer>[]> {
  const sendAs = (type: RowType): Promise<Answer>[] => {
    const shared = each && encodeShared(type, rows, each)
    if (each && shared) return [sendWith(shared, sharedParameters(table, type, each), shared.parameters)]
    const encoded = encodeRows(type, rows)
    if (encoded.parameters.length > 1) pipeline.begin()
    return encoded.parameters.map((parameter) => sendWith(encoded, oneParameter(table), [parameter]))
  }
  const sendWith = ({ columns }: Pick<EncodedRows, 'columns'>, source: RowSource, values: readonly Buffer[]) => {
    const text = textOf(columns, source)
    return pipeline.send({ name: nameOf(text), text, values: [...values] })
  }
  const type = pipeline.rowType(table)
  return type instanceof Promise ? type.then(sendAs) : sendAs(type)
}

/** A row that a statement over rows returns. */
type Returned = Readonly<Record<'key' | 'seq' | 'new_seqs', unknown>>

async function rowsOf(answers: ReturnType<typeof writeRows>): Promise<readonly Returned[]> {
  return (await Promise.all(await answers)).flatMap((answer) => answer.rows)
}

/**
 * Inserts rows and returns their assigned numbers, in the order of the rows. Throws synchronously if rows cannot be sent,
 * so that no COMMIT follows.
 */
export function insertNumbered(
  pipeline: Pipeline,
  { table, rows, key, unlessTaken, each }: Statement & { kind: 'number' },
): Promise<(number | undefined)[]> {
  return unlessTaken ? insertFree(pipeline, table, rows, key, unlessTaken) : insertEach(pipeline, table, rows, each)
}

/**
 * Inserts rows and returns their numbers. The statement reads, numbers and inserts the rows in their order, so ascending
 * numbers are in the order of the rows, in whatever order PostgreSQL returns them. One text of all numbers costs less than
 * thousands of result rows.
 */
function insertEach(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  each: readonly string[] | undefined,
): Promise<number[]> {
  const stored = insertInto(table, ' RETURNING seq')
  const textOf: TextOf = (columns, source) =>
    `WITH _stored AS (${stored(columns, source)}) SELECT array_agg(seq)::text AS new_seqs FROM _stored`
  return rowsOf(writeRows(pipeline, table, rows, textOf, each)).then((found) => {
    const numbers = found.flatMap((row) => numbersOf(String(row.new_seqs)))
    if (numbers.length !== rows.length) throw new Error(`${table} numbered ${numbers.length} of ${rows.length} rows`)
    return numbers.sort((a, b) => a - b)
  })
}

/** The numbers of an array as PostgreSQL writes it: `{1,2}`. */
const numbersOf = (array: string): number[] => JSON.parse(`[${array.slice(1, -1)}]`)

/** Inserts the rows that do not exist yet. Their numbers are matched by the key, because some rows may be left out. */
function insertFree(
  pipeline: Pipeline,
  table: keyof Tables,
  rows: readonly object[],
  key: string,
  unlessTaken: readonly string[],
): Promise<(number | undefined)[]> {
  const textOf = insertInto(table, ` ON CONFLICT (${unlessTaken.join(', ')}) DO NOTHING RETURNING seq, ${key} AS key`)
  return rowsOf(writeRows(pipeline, table, rows, textOf)).then((found) => {
    const numbers = new Map(found.map((row) => [row.key, Number(row.seq)]))
    return rows.map((row) => numbers.get(Reflect.get(row, key)))
  })
}

/** Updates the row with the key of each given row. Returns the keys of the updated rows. */
export function updateEach(
  pipeline: Pipeline,
  { table, rows, match, where }: Statement & { kind: 'update' },
): Promise<unknown[]> {
  const [key = ''] = match
  // Sorted by primary key, so that two such statements lock their common rows in the same order.
  const sorted = [...rows].sort((a, b) => Reflect.get(a, key) - Reflect.get(b, key))
  const textOf: TextOf = (columns, source) => {
    const sets = columns.filter((name) => !match.includes(name)).map((name) => `${name} = d.${name}`)
    const finds = match.map((name) => `t.${name} = d.${name}`)
    // As an expression, so that no partial index over these constants is used instead of the key.
    const constants = Object.entries(where).map(([name, text]) => `t.${name} || '' = '${text}'`)
    // PostgreSQL estimates an unknown number of rows as ten, so for one row it would plan the statement each time. This
    // condition makes the kept plan an index look-up: a join that was planned for a small table would read all of it.
    if (rows.length === 1) constants.push(`t.${key} = (SELECT ${key} FROM ${source.from})`)
    const from = `(SELECT ${columns.join(', ')} FROM ${source.from}) AS d`
    return `UPDATE ${table} AS t SET ${sets.join(', ')} FROM ${from} WHERE ${[...finds, ...constants].join(' AND ')} RETURNING t.${key} AS key`
  }
  return rowsOf(writeRows(pipeline, table, sorted, textOf)).then((found) => found.map((row) => row.key))
}

const names = new Map<string, string>()

function nameOf(text: string): string {
  const name = names.get(text) ?? `i${names.size + 1}`
  names.set(text, name)
  return name
}
