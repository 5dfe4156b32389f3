/**
 * Reads JSON of columns that only this module writes. A damaged value counts as absent and is reported,
 * so that accounts still get their alerts.
 */
import { tryParseJson } from '../../base/index.js'
import { reportDamage, type Transaction } from '../../store/statement.js'

/** The list in a column; `undefined` if it is damaged. */
export function listIn<Item>(json: string, isItem: (item: unknown) => item is Item): Item[] | undefined {
  const list = tryParseJson(json)
  return Array.isArray(list) && list.every(isItem) ? list : undefined
}

/** Whether an element is a text. */
export const isText = (item: unknown): item is string => typeof item === 'string'

/** Reports rows that have damaged columns. */
export function* reportUnreadable(table: string, names: readonly string[]): Transaction<void> {
  for (const name of names) yield* reportDamage({ table, found: `the row of ${name} cannot be read` })
}
