/**
 * The expressions that select items by a field of their payload, such as `$.order.total > 100 and $.country = "DE"`.
 * The grammar is in docs/bulk-cancel.md. There is nothing to call, nothing to assign and no regular expression, and each
 * part has a limit, so an expression costs little however it is written.
 */

/** A value to compare with. */
export type Scalar = string | number | boolean | null

/** One step of a path: a member of an object, one element of a list, or any element. */
export type PathStep =
  | { readonly kind: 'member'; readonly name: string }
  | { readonly kind: 'element'; readonly index: number }
  | { readonly kind: 'any' }

/** A test of the values at a path. It passes if any of the values passes. */
export type Comparison =
  | { readonly op: 'exists' }
  | { readonly op: '=' | '!=' | 'contains'; readonly value: Scalar }
  | { readonly op: '<' | '<=' | '>' | '>='; readonly value: string | number }
  | { readonly op: 'startsWith'; readonly value: string }
  | { readonly op: 'in'; readonly values: readonly Scalar[] }

/** A parsed expression. */
export type Expression =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Expression[] }
  | { readonly kind: 'not'; readonly part: Expression }
  | { readonly kind: 'test'; readonly path: readonly PathStep[]; readonly comparison: Comparison }

/** Limits of one expression. */
export const EXPRESSION_LIMITS = {
  /** Characters. */
  length: 2_000,
  /** Parentheses and `not`s inside each other. */
  depth: 16,
  comparisons: 32,
  /** Members and elements of one path. */
  steps: 16,
  /** Values of one `in`. */
  values: 50,
} as const

/** What is wrong with an expression, and where. */
export class ExpressionProblem extends Error {
  /** @param at index of the first wrong character. */
  constructor(what: string, source: string, at: number) {
    super(`at character ${at + 1}, ${quoteAt(source, at)}: ${what}`)
    this.name = 'ExpressionProblem'
  }
}

const QUOTED_LENGTH = 20

function quoteAt(source: string, at: number): string {
  if (at >= source.length) return 'the end'
  const rest = source.slice(at, at + QUOTED_LENGTH)
  return `\`${rest}${source.length > at + QUOTED_LENGTH ? '…' : ''}\``
}
