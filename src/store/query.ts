import type { Compilable, Kysely } from 'kysely'
import type { Dialect } from './dialect.js'
import type { Tables } from './schema/index.js'

/**
 * A query is written once, with Kysely, over named parameters, and compiled once for each dialect. At run time only
 * the parameters are filled in: building the text again for each call would cost more than running it.
 */

/** Stands for a named parameter while a query is compiled. */
export class Parameter {
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

const parameterNames: object = new Proxy({}, { get: (_target, name) => new Parameter(String(name)) })

/**
 * Declares a query. The builder runs once per dialect, so it must not look at parameter values: a choice that depends
 * on a value is two queries.
 */
export function query<Params extends object, Row = unknown>(
  build: (building: Building<Params>) => Compilable<Row>,
): Query<Params, Row> {
  const byDialect = new Map<Dialect, Compiled>()
  return {
    compile(dialect) {
      let compiled = byDialect.get(dialect)
      if (!compiled) {
        const { sql, parameters } = build({ db: dialect.db, p: parameterNames as Required<Params>, d: dialect }).compile()
        const slots = parameters.map((value): Slot => (value instanceof Parameter ? { parameter: value.name } : { value }))
        compiled = { sql, slots }
        byDialect.set(dialect, compiled)
      }
      return compiled
    },
  }
}

/** Fills the slots of a compiled query with the parameters of one call. */
export function bind(compiled: Compiled, params: object): unknown[] {
  const values: Record<string, unknown> = { ...params }
  return compiled.slots.map((slot) => ('value' in slot ? slot.value : (values[slot.parameter] ?? null)))
}
