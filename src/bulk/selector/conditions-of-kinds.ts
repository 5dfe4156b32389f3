import { CONDITION_NAMES, CONDITIONS, type ItemsOf } from '../../contract/bulk/conditions.js'
import { type Ages, type Conditions, contradiction, durationProblem, expressionProblem } from './conditions.js'

/** The conditions in the selectors of kinds other than `cancelRuns`, whose selector is parsed in `selector.ts`. */

/** A selector as it was sent. */
type Given = Readonly<Record<string, unknown>>

/** Conditions with their types; a schema has checked them. */
export type Checked = Conditions & Ages

const ITEM_WORDS: Readonly<Record<ItemsOf, string>> = {
  runs: 'active runs',
  messages: 'pending messages',
  deadRuns: 'failed runs',
  deadLetters: 'dead letters',
}

/** Why a condition does not apply to these items, in words; `undefined` if all do. */
export function foreignCondition(items: ItemsOf, given: Given): string | undefined {
  const name = CONDITION_NAMES.find((one) => Object.hasOwn(given, one) && !Object.hasOwn(CONDITIONS[items], one))
  if (name === undefined) return undefined
  const known = Object.keys(CONDITIONS[items]).join(', ')
  return `\`${name}\` is not a condition on ${ITEM_WORDS[items]}. Conditions on them: ${known}. Nothing was changed.`
}

/** Splits a checked selector into its conditions and the other filters. */
export function splitConditions(given: Given): { readonly conditions: Checked; readonly filters: Given } {
  const isCondition = (name: string) => CONDITION_NAMES.some((one) => one === name)
  const entries = Object.entries(given)
  return {
    // The schema of the kind has checked their types.
    conditions: Object.fromEntries(entries.filter(([name]) => isCondition(name))) as Checked,
    filters: Object.fromEntries(entries.filter(([name]) => !isCondition(name))),
  }
}

/** What is wrong with conditions that have the right types, in words; `undefined` if nothing is. */
export function conditionsProblem(given: Given): string | undefined {
  const { conditions, filters } = splitConditions(given)
  const problem = valueProblem(conditions) ?? contradiction(conditions) ?? problemBesideIds(conditions, filters)
  return problem === undefined ? undefined : `${problem} Nothing was changed.`
}

function valueProblem({ olderThan, youngerThan, payload }: Checked): string | undefined {
  for (const [name, text] of Object.entries({ olderThan, youngerThan })) {
    const problem = text === undefined ? undefined : durationProblem(text)
    if (problem !== undefined) return `\`${name}\` ${problem}; found "${text}".`
  }
  const problem = payload === undefined ? undefined : expressionProblem(payload)
  return problem === undefined ? undefined : `\`payload\` is not a valid expression: ${problem}`
}

function problemBesideIds(conditions: Checked, filters: Given): string | undefined {
  const ids = ['messageIds', 'dlqIds'].find((name) => Object.hasOwn(filters, name))
  const [name] = Object.keys(conditions)
  return ids === undefined || name === undefined ? undefined : `\`${ids}\` names the items; leave out \`${name}\`.`
}
