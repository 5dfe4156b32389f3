import { unreachable } from '../../base/index.js'
import type { Comparison, Expression, PathStep, Scalar } from './syntax.js'

/**
 * Values that one evaluation may visit; they take a few milliseconds. Only `[*]` and `contains` visit many: a payload of
 * 128 KiB may hold sixty thousand elements, and an expression may have many comparisons.
 */
const MAX_VISITS = 50_000

/** Comparisons of characters that take as long as a visit. */
const CHARACTERS_PER_VISIT = 500

/** An evaluation looked at too many values. */
export class TooCostly extends Error {}

/** Whether a payload matches. @throws TooCostly */
export type Predicate = (payload: unknown) => boolean

/** The visits that one evaluation has left. */
interface Budget {
  left: number
}

type Test = (value: unknown, budget: Budget) => boolean

/** Compiles an expression into functions, so that an evaluation need not interpret its text. */
export function compileExpression(expression: Expression): Predicate {
  const test = testOf(expression)
  return (payload) => test(payload, { left: MAX_VISITS })
}

function testOf(expression: Expression): Test {
  switch (expression.kind) {
    case 'and': {
      const tests = expression.parts.map(testOf)
      return (value, budget) => tests.every((test) => test(value, budget))
    }
    case 'or': {
      const tests = expression.parts.map(testOf)
      return (value, budget) => tests.some((test) => test(value, budget))
    }
    case 'not': {
      const test = testOf(expression.part)
      return (value, budget) => !test(value, budget)
    }
    case 'test':
      return along(expression.path, comparing(expression.comparison))
    default:
      return unreachable(expression)
  }
}

function spend(budget: Budget, visits: number): void {
  budget.left -= visits
  if (budget.left < 0) throw new TooCostly()
}

/** Applies a test to the value at a path; with `[*]`, to each until one passes. An absent value passes none. */
function along(path: readonly PathStep[], test: Test): Test {
  return path.reduceRight<Test>((next, step) => {
    switch (step.kind) {
      case 'member':
        return (value, budget) =>
          // Only own members: `__proto__` and `constructor` are names like any other.
          isRecord(value) && Object.hasOwn(value, step.name) && next(value[step.name], budget)
      case 'element':
        return (value, budget) => Array.isArray(value) && step.index < value.length && next(value[step.index], budget)
      case 'any':
        return (value, budget) => Array.isArray(value) && value.some((element) => visit(next, element, budget))
      default:
        return unreachable(step)
    }
  }, test)
}

function visit(test: Test, value: unknown, budget: Budget): boolean {
  spend(budget, 1)
  return test(value, budget)
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function comparing(comparison: Comparison): Test {
  switch (comparison.op) {
    case 'exists':
      return () => true
    case '=':
      return (value) => value === comparison.value
    case '!=':
      return (value) => value !== comparison.value
    case '<':
    case '<=':
    case '>':
    case '>=':
      return ordering(comparison.op, comparison.value)
    case 'contains':
      return containing(comparison.value)
    case 'startsWith':
      return (value) => typeof value === 'string' && value.startsWith(comparison.value)
    case 'in': {
      const values = new Set<unknown>(comparison.values)
      return (value) => values.has(value)
    }
    default:
      return unreachable(comparison)
  }
}

/** Compares a number with a number, or a text with a text by its UTF-16 code units. Different types are not ordered. */
function ordering(op: '<' | '<=' | '>' | '>=', limit: string | number): Test {
  const isOrdered = (value: unknown): value is typeof limit => typeof value === typeof limit
  switch (op) {
    case '<':
      return (value) => isOrdered(value) && value < limit
    case '<=':
      return (value) => isOrdered(value) && value <= limit
    case '>':
      return (value) => isOrdered(value) && value > limit
    case '>=':
      return (value) => isOrdered(value) && value >= limit
    default:
      return unreachable(op)
  }
}

/** Tests whether a text contains a text, or a list contains a value. */
function containing(part: Scalar): Test {
  return (value, budget) => {
    if (typeof value === 'string') {
      if (typeof part !== 'string') return false
      // In the worst case, a search compares the whole part at each position of the text.
      spend(budget, Math.ceil((value.length * part.length) / CHARACTERS_PER_VISIT))
      return value.includes(part)
    }
    if (!Array.isArray(value)) return false
    spend(budget, value.length)
    return value.includes(part)
  }
}
