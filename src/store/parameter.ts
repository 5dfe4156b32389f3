/**
 * A parameter of a statement: a constant, or a parameter of the query by name. The numbers of a shared list are in a
 * table of the connection, and the statement gets the length of the list.
 */
export type Slot = { readonly value: unknown } | { readonly parameter: string; readonly isShared?: true }

/** Placeholder of a named parameter during compilation. */
export class Parameter {
  readonly slot: Slot & { readonly parameter: string }

  constructor(parameter: string, isShared?: true) {
    this.slot = { parameter, ...(isShared && { isShared }) }
  }
}

/** Marks a parameter of a builder: see `Dialect.inSharedNumbers`. */
export function shared(list: readonly number[]): unknown {
  // Safe: while a query is compiled, its parameters are placeholders.
  return new Parameter((list as unknown as Parameter).slot.parameter, true)
}
