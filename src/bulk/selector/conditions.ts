import { parseDuration } from '../../base/index.js'
import type { ItemsOf } from '../../contract/bulk/conditions.js'
import type { Standing } from '../../workflow/index.js'
import { compileExpression, type Predicate } from '../expression/evaluate.js'
import { parseExpression } from '../expression/parse.js'
import { ExpressionProblem } from '../expression/syntax.js'

/** The conditions of a selector that are tested on the items which pass its filters. */
export interface Conditions {
  readonly state?: readonly string[] | undefined
  readonly waitingFor?: readonly string[] | undefined
  readonly attemptsAtLeast?: number | undefined
  readonly attemptsAtMost?: number | undefined
  readonly errorContains?: readonly string[] | undefined
  /** An expression over the payload. */
  readonly payload?: string | undefined
}

/** What a selector says about age, as it was given. */
export interface Ages {
  readonly olderThan?: string | undefined
  readonly youngerThan?: string | undefined
}

/** Compiled conditions. */
export interface Compiled {
  readonly items: ItemsOf
  /** Test of the state of an item; absent if every item passes. */
  readonly standing: ((standing: Standing) => boolean) | undefined
  /** Whether the test needs the last failed attempts. */
  readonly attempts: boolean
  readonly payload: Predicate | undefined
}

/** Compiles conditions; `undefined` without any. They have been checked before. */
export function compileConditions(items: ItemsOf, conditions: Conditions): Compiled | undefined {
  const { payload, errorContains, waitingFor } = conditions
  const tests = testsOf(conditions)
  if (tests.length === 0 && payload === undefined) return undefined
  return {
    items,
    standing: tests.length > 0 ? (standing) => tests.every((test) => test(standing)) : undefined,
    attempts: errorContains !== undefined || waitingFor !== undefined,
    payload: payload === undefined ? undefined : compileExpression(parseExpression(payload)),
  }
}

type Test = (standing: Standing) => boolean

function testsOf({ state, waitingFor, attemptsAtLeast, attemptsAtMost, errorContains }: Conditions): Test[] {
  const tests: Test[] = []
  if (state) tests.push(({ states }) => states.some((one) => state.includes(one)))
  if (attemptsAtLeast !== undefined) tests.push(({ attempts }) => attempts >= attemptsAtLeast)
  if (attemptsAtMost !== undefined) tests.push(({ attempts }) => attempts <= attemptsAtMost)
  if (waitingFor) tests.push(({ names }) => names.some((name) => waitingFor.includes(name)))
  if (errorContains)
    tests.push(({ errors }) => errors.some((text) => errorContains.some((part) => text.includes(part))))
  return tests
}

/** What is wrong with an expression, in words; `undefined` if nothing is. */
export function expressionProblem(source: string): string | undefined {
  try {
    parseExpression(source)
    return undefined
  } catch (error) {
    if (error instanceof ExpressionProblem) return error.message
    throw error
  }
}

/** What is wrong with a duration; `undefined` if nothing is. */
export function durationProblem(text: string): string | undefined {
  return (parseDuration(text) ?? 0) > 0 ? undefined : 'must be a duration such as 30s, 15m, 2h or 1d12h'
}

/** The times of creation between which an item has the wanted age, exclusive. */
export interface AgeBounds {
  readonly after?: number
  readonly before?: number
}

/** @param at now, Unix milliseconds. */
export function ageBounds({ olderThan, youngerThan }: Ages, at: number): AgeBounds {
  const older = olderThan === undefined ? undefined : parseDuration(olderThan)
  const younger = youngerThan === undefined ? undefined : parseDuration(youngerThan)
  return { ...(older !== undefined && { before: at - older }), ...(younger !== undefined && { after: at - younger }) }
}

/** What is wrong with conditions that are each valid; `undefined` if nothing is. */
export function contradiction(given: Conditions & Ages): string | undefined {
  const { attemptsAtLeast, attemptsAtMost, olderThan, youngerThan } = given
  if (attemptsAtLeast !== undefined && attemptsAtMost !== undefined && attemptsAtLeast > attemptsAtMost) {
    return `\`attemptsAtLeast\` (${attemptsAtLeast}) must not be more than \`attemptsAtMost\` (${attemptsAtMost}).`
  }
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = ageBounds(given, 0)
  if (after < before) return undefined
  return `Nothing is both older than ${olderThan} and younger than ${youngerThan}: \`youngerThan\` must be the longer one.`
}
