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
  /** Name of the prepared statement in PostgreSQL: short and unique in this process. PostgreSQL keeps only named ones. */
  readonly name: string | undefined
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

/** All queries declared so far: a test checks their query plans. */
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
export function query<Params extends object, Row = unknown>(build: Builder<Params, Row>): Query<Params, Row> {
  const made = compiledOnce(build, () => `q${++compilations}`)
  declared.push(made)
  return made
}

type Builder<Params, Row> = (building: Building<Params>) => Compilable<Row>

function compiledOnce<Params extends object, Row>(
  build: Builder<Params, Row>,
  newName: () => string | undefined,
): Query<Params, Row> {
  const byDialect = new Map<Dialect, Compiled>()
  return {
    compile(dialect) {
      const known = byDialect.get(dialect)
      if (known) return known
      const { sql, parameters } = build({ db: dialect.db, p: parameterNames as Required<Params>, d: dialect }).compile()
      const slots = parameters.map((value): Slot => (value instanceof Parameter ? value.slot : { value }))
      const isSharing = slots.some((slot) => 'parameter' in slot && slot.isShared === true)
      const compiled = { name: newName(), sql, slots, isSharing }
      byDialect.set(dialect, compiled)
      return compiled
    },
  }
}

/** Shapes of one list that are kept for good: more than people use. */
const SHAPES_KEPT = 64
/** Further shapes that are kept at a time; the oldest is evicted. */
const SHAPES_RECENT = 64

/**
 * Declares queries that differ by their shape, such as the conditions of a list. Each is built at its first use.
 *
 * Callers choose the shape, and there may be thousands. Only the first ones are kept for good, with a prepared statement in
 * every connection. Later ones have no name and are evicted, so that no caller can fill the memory of the server.
 * @param build gets the members of the shape in addition to what the builder of `query` gets. Members that differ must have
 *   different texts.
 */
export function queriesByShape<Shape extends readonly unknown[], Params extends object, Row>(
  build: (building: Building<Params>, ...shape: Shape) => Compilable<Row>,
): (...shape: Shape) => Query<Params, Row> {
  const kept = new Map<string, Query<Params, Row>>()
  const recent = new Map<string, Query<Params, Row>>()
  return (...shape) => {
    const name = shape.map(String).join(';')
    const known = kept.get(name) ?? recent.get(name)
    if (known) return known
    const builder: Builder<Params, Row> = (building) => build(building, ...shape)
    if (kept.size < SHAPES_KEPT) {
      const made = query(builder)
      kept.set(name, made)
      return made
    }
    const made = compiledOnce(builder, () => undefined)
    const [oldest] = recent.keys()
    if (oldest !== undefined && recent.size >= SHAPES_RECENT) recent.delete(oldest)
    recent.set(name, made)
    return made
  }
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

/** Casts an object to a record. A copy would cost more than running the statement. */
function membersOf(params: object): Readonly<Record<string, unknown>> {
  return params as Readonly<Record<string, unknown>>
}

function ordered(row: object, columns: readonly string[]): unknown[] {
  const values = membersOf(row)
  if (Object.keys(row).length !== columns.length) throw new TypeError('rows of one insert differ in their columns')
  return columns.map((column) => values[column])
}
