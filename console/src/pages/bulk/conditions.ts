/** The conditions of a selection: as URL parameters, as fields of a selector and as CLI flags. */
import { MESSAGE_STANDINGS, RUN_STANDINGS } from '../../../../src/contract/bulk/conditions.js'
import { STANDING_WORDS } from '../../../../src/contract/words/states.js'
import { given, textAt, wholeAt } from '../../lib/search.js'
import { capital } from '../../lib/states.js'
import type { Family } from './families.js'

/** Conditions, each with one value. Durations are texts such as `2h`. */
export interface Conditions {
  readonly state?: string
  readonly waiting?: string
  readonly older?: string
  readonly younger?: string
  readonly attempts?: number
  readonly attemptsMost?: number
  readonly error?: string
  readonly payload?: string
  /** Name of a saved selector. */
  readonly saved?: string
}

/** The name of a condition in the URL. */
export type ConditionName = keyof Conditions

interface ConditionFacts {
  /** The field of the selector. */
  readonly field: string
  /** The flag of the CLI. */
  readonly flag: string
}

/** The facts of each condition, in display order. */
export const CONDITIONS: Readonly<Record<ConditionName, ConditionFacts>> = {
  state: { field: 'state', flag: '--state' },
  waiting: { field: 'waitingFor', flag: '--waiting-for' },
  older: { field: 'olderThan', flag: '--older-than' },
  younger: { field: 'youngerThan', flag: '--younger-than' },
  attempts: { field: 'attemptsAtLeast', flag: '--attempts-at-least' },
  attemptsMost: { field: 'attemptsAtMost', flag: '--attempts-at-most' },
  error: { field: 'errorContains', flag: '--error' },
  payload: { field: 'payload', flag: '--payload' },
  saved: { field: 'saved', flag: '--saved' },
}

const NAMES = Object.keys(CONDITIONS) as ConditionName[]

/** States of items that may be selected; none for dead letters. */
export const STATES_OF: Readonly<Record<Family, readonly string[]>> = {
  runs: RUN_STANDINGS,
  messages: MESSAGE_STANDINGS,
  deadRuns: [],
  deadLetters: [],
  cancelledRuns: [],
  cancelledMessages: [],
}

/** The title of each state. */
export const STATE_TITLES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(STANDING_WORDS).map(([state, { word }]) => [state, capital(word)]),
)

/** The conditions on items of a family. */
export const conditionNamesOf = (family: Family): ConditionName[] =>
  NAMES.filter((name) => {
    if (name === 'state') return STATES_OF[family].length > 0
    return name !== 'waiting' || family === 'runs'
  })

/** Reads conditions from the URL. */
export function conditionsAt(search: Record<string, unknown>): Conditions {
  return given({
    state: textAt(search, 'state'),
    waiting: textAt(search, 'waiting'),
    older: textAt(search, 'older'),
    younger: textAt(search, 'younger'),
    attempts: wholeAt(search, 'attempts'),
    attemptsMost: wholeAt(search, 'attemptsMost'),
    error: textAt(search, 'error'),
    payload: textAt(search, 'payload'),
    saved: textAt(search, 'saved'),
  })
}

/** The conditions of a choice that apply to items of a family. */
export function conditionsOf(family: Family, choice: Conditions): (readonly [ConditionName, string | number])[] {
  return conditionNamesOf(family).flatMap((name) => {
    const value = choice[name]
    return value === undefined ? [] : [[name, value] as const]
  })
}

/** Conditions as fields of a selector. */
export const conditionFields = (family: Family, choice: Conditions): Record<string, unknown> =>
  Object.fromEntries(conditionsOf(family, choice).map(([name, value]) => [CONDITIONS[name].field, value]))

/** Conditions as CLI flags. */
export const conditionFlags = (family: Family, choice: Conditions): string[] =>
  conditionsOf(family, choice).flatMap(([name, value]) => [CONDITIONS[name].flag, String(value)])

/** The conditions to keep for another family of items. States and saved selectors belong to one family and are dropped. */
export function conditionsFor(family: Family, { state: _, saved: __, ...shared }: Conditions): Conditions {
  return Object.fromEntries(conditionsOf(family, shared))
}
