import type { Compilable, Kysely } from 'kysely'
import { HomeportError } from '../contract/errors/errors.js'
import type { Dialect } from './dialect.js'
import { Parameter, type Slot } from './parameter.js'
import type { Tables } from './schema/index.js'

/**
 * A query is declared once, with Kysely, over named parameters, and compiled once per dialect. A call only binds the
 * parameters: building the SQL for each call would cost more than running it.
 */

/** Arguments of a query builder: the database, the parameters by name, the dialect. */
export interface Building<Params> {
  readonly db: Kysely<Tables>
  /** `p.name` is the parameter `name`. It has the parameter's type, but its value is a placeholder. */
  readonly p: Required<Params>
  readonly d: Dialect
}

/** A query compiled for one dialect. */
export interface Compiled {
  /** Name of the prepared statement in PostgreSQL: short and unique in this process. */
  readonly name: string
  readonly sql: string
  readonly slots: readonly Slot[]
  /** Whether one of the slots is shared. Default: none. */
  readonly isSharing?: boolean
}

/** A query with its parameters (`Params`) and the type of its rows (`Row`). */
export interface Query<Params, Row> {
  /** Compiles for a dialect, once. */
  compile(dialect: Dialect): Compiled
  /** For types only; never set. */
  readonly __types?: { params: Params; row: Row }
}

let compilations = 0

const declared: Pick<Query<never, unknown>, 'compile'>[] = []

/** Every query that was declared so far: a test reads their plans. */
export const declaredQueries = (): readonly Pick<Query<never, unknown>, 'compile'>[] => declared

const parameterNames: object = new Proxy({}, { get: (_target, name) => new Parameter(String(name)) })

/**
 * Declares a query. The builder runs once per dialect, so it must not depend on parameter values: declare two queries
 * instead.
 *
 * Write a constant that selects a partial index (`WHERE state = 'pending'`) with `sql.lit`. If it were a parameter, SQLite
 * would plan the statement again whenever it is bound, to see whether the index applies. Numbers always become literals on
 * SQLite.
 */
export function query<Params extends object, Row = unknown>(
  build: (building: Building<Params>) => Compilable<Row>,
): Query<Params, Row> {
  const byDialect = new Map<Dialect, Compiled>()
  const made: Query<Params, Row> = {
    compile(dialect) {
      let compiled = byDialect.get(dialect)
      if (!compiled) {
        const { sql, parameters } = build({
          db: dialect.db,
          p: parameterNames as Required<Params>,
          d: dialect,
        }).compile()
        const slots = parameters.map((value): Slot => (value instanceof Parameter ? value.slot : { value }))
        const isSharing = slots.some((slot) => 'parameter' in slot && slot.isShared === true)
        compiled = { name: `q${++compilations}`, sql, slots, isSharing }
        byDialect.set(dialect, compiled)
      }
      return compiled
    },
  }
  declared.push(made)
  return made
}

/** The parameter values of a call, in the order of the statement. */
export function bind(compiled: Compiled, params: object): unknown[] {
  const values = membersOf(params)
  return compiled.slots.map((slot) => storable('value' in slot ? slot.value : values[slot.parameter]))
}

/**
 * Checks that both databases store a value identically: texts without U+0000, 53-bit integers, bytes, NULL, and lists
 * of texts or integers.
 * @throws HomeportError `invalid_request` for U+0000 in a text, because callers send texts.
 * @throws TypeError for anything else, which is a defect.
 */
export function storable(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return withoutNul(value)
  if (Number.isSafeInteger(value) || value instanceof Uint8Array) return value
  if (!Array.isArray(value)) throw new TypeError(`the store does not keep a ${typeof value} such as ${String(value)}`)
  for (const item of value) storable(item)
  return value
}

function withoutNul(text: string): string {
  if (!text.includes('\0')) return text
  throw new HomeportError('invalid_request', { problem: 'A text contains the character U+0000. Remove it.' })
}

/** The values of rows for one insert, each in the order of the first row's columns. */
export function valuesOf(rows: readonly object[]): unknown[][] {
  const columns = Object.keys(rows[0] ?? {})
  return rows.map((row) => {
    const values: unknown[] = isInOrder(row, columns) ? Object.values(row) : ordered(row, columns)
    for (let index = 0; index < values.length; index++) values[index] = storable(values[index])
    return values
  })
}

/** Rows of one insert nearly always have their columns in the same order. */
function isInOrder(row: object, columns: readonly string[]): boolean {
  const own = Object.keys(row)
  return own.length === columns.length && own.every((column, index) => column === columns[index])
}

/** The same object as a record. A copy would cost more than running the statement. */
function membersOf(params: object): Readonly<Record<string, unknown>> {
  return params as Readonly<Record<string, unknown>>
}

function ordered(row: object, columns: readonly string[]): unknown[] {
  const values = membersOf(row)
  if (Object.keys(row).length !== columns.length) throw new TypeError('rows of one insert differ in their columns')
  return columns.map((column) => values[column])
}
