import type { Compilable, Kysely } from 'kysely'
import { HomeportError } from '../contract/errors/errors.js'
import type { Dialect } from './dialect.js'
import type { Tables } from './schema/index.js'

/**
 * A query is written once, with Kysely, over named parameters, and compiled once for each dialect. At run time only
 * the parameters are filled in: building the text again for each call would cost more than running it.
 */

/** Stands for a named parameter while a query is compiled. */
class Parameter {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** What a query builder gets: the database, the parameters by name, and what the dialect can do. */
export interface Building<Params> {
  readonly db: Kysely<Tables>
  /** `p.name` is the parameter `name`: of the parameter's type for the compiler, a placeholder in truth. */
  readonly p: Required<Params>
  readonly d: Dialect
}

/** A parameter of a statement: its value itself, or a parameter of the query by name. */
export type Slot = { readonly value: unknown } | { readonly parameter: string }

/** A query compiled for one dialect. */
export interface Compiled {
  /** Short and unique in this process, for servers that keep prepared statements by name. */
  readonly name: string
  readonly sql: string
  readonly slots: readonly Slot[]
}

/** A query of the store: what it needs (`Params`) and what a row of its answer holds (`Row`). */
export interface Query<Params, Row> {
  /** Compiles for a dialect; the same dialect always gets the same object. */
  compile(dialect: Dialect): Compiled
  /** Types only; never set. */
  readonly __types?: { params: Params; row: Row }
}

let compilations = 0

const parameterNames: object = new Proxy({}, { get: (_target, name) => new Parameter(String(name)) })

/**
 * Declares a query. The builder runs once per dialect, so it must not look at parameter values: a choice that depends
 * on a value is two queries.
 *
 * A value that never changes and that an index is limited to (`WHERE state = 'pending'`) is best written with `sql.lit`:
 * as a parameter, SQLite plans the statement anew whenever it is bound, to see whether the index fits. Numbers are always
 * written into the text there.
 */
export function query<Params extends object, Row = unknown>(
  build: (building: Building<Params>) => Compilable<Row>,
): Query<Params, Row> {
  const byDialect = new Map<Dialect, Compiled>()
  return {
    compile(dialect) {
      let compiled = byDialect.get(dialect)
      if (!compiled) {
        const { sql, parameters } = build({
          db: dialect.db,
          p: parameterNames as Required<Params>,
          d: dialect,
        }).compile()
        const slots = parameters.map(
          (value): Slot => (value instanceof Parameter ? { parameter: value.name } : { value }),
        )
        compiled = { name: `q${++compilations}`, sql, slots }
        byDialect.set(dialect, compiled)
      }
      return compiled
    },
  }
}

/** Fills the slots of a compiled query with the parameters of one call. */
export function bind(compiled: Compiled, params: object): unknown[] {
  const values = membersOf(params)
  return compiled.slots.map((slot) => storable('value' in slot ? slot.value : values[slot.parameter]))
}

/**
 * Holds a parameter to what both databases keep alike: texts without U+0000, integers of 53 bits, bytes, NULL, and
 * lists of texts or of integers. Of anything else one database would keep something slightly different.
 * @throws HomeportError `invalid_request` for U+0000 in a text, because texts come from callers.
 * @throws TypeError for everything else, because the rest comes from us.
 */
function storable(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return withoutNul(value)
  if (Number.isSafeInteger(value) || value instanceof Uint8Array) return value
  if (!Array.isArray(value)) throw new TypeError(`the store does not keep a ${typeof value} such as ${String(value)}`)
  for (const item of value) storable(item)
  return value
}

function withoutNul(text: string): string {
  if (!text.includes('\0')) return text
  throw new HomeportError('invalid_request', { problem: 'A text holds the character U+0000. Leave it out.' })
}

/** The values of rows that are inserted together, each in the order of the first one's columns. */
export function valuesOf(rows: readonly object[]): unknown[][] {
  const columns = Object.keys(rows[0] ?? {})
  return rows.map((row, index) => Object.values(index === 0 ? row : ordered(row, columns)).map(storable))
}

/** The same object, seen by the names of its members: a copy would cost more than running the statement. */
function membersOf(params: object): Readonly<Record<string, unknown>> {
  return params as Readonly<Record<string, unknown>>
}

function ordered(row: object, columns: readonly string[]): object {
  const values = membersOf(row)
  if (Object.keys(row).length !== columns.length) throw new TypeError('rows of one insert differ in their columns')
  return columns.map((column) => values[column])
}
