import { suggestion } from '../../config/index.js'
import { misused, notFound } from '../errors.js'

/** An item that a user can name by its id or its name. */
export interface Named {
  readonly id: string
  readonly name: string
}

const MAX_NAMED = 10

/**
 * Selects the item with this id or name. An id takes precedence.
 * @param what the noun for an item, such as `database`; `homeport <list>` lists the items.
 * @throws HomeportError `cli_not_found`, or `cli_misused` when several have the name.
 */
export function pickNamed<Item extends Named>(
  items: readonly Item[],
  wanted: string,
  what: { readonly item: string; readonly list: string },
): Item {
  const byId = items.filter(({ id }) => id === wanted)
  const found = byId.length > 0 ? byId : items.filter(({ name }) => name === wanted)
  const [only, ...others] = found
  if (only === undefined) throw notFound(missing(items, wanted, what))
  if (others.length === 0) return only
  const ids = found.map(({ id }) => id).join(', ')
  throw misused(`${found.length} ${what.item}s have the name "${wanted}". Use the id of one of them: ${ids}.`)
}

function missing(items: readonly Named[], wanted: string, { item, list }: { item: string; list: string }): string {
  const start = `There is no ${item} with the id or name "${wanted}"`
  if (items.length === 0) return `${start}. There are no ${item}s yet.`
  if (items.length > MAX_NAMED) {
    const names = items.map(({ name }) => name)
    return `${start}${suggestion(wanted, names) || '.'} See: homeport ${list}.`
  }
  return `${start}. There are: ${items.map(({ name, id }) => `${name} (${id})`).join(', ')}.`
}
