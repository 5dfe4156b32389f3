/** What stands in addresses as filters, read with care: an address may be written by hand. */

/** A text of an address; a label such as 42 stands there like the number 42. */
export function textAt(search: Record<string, unknown>, name: string): string | undefined {
  const value = search[name]
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** A whole number of an address. */
export function wholeAt(search: Record<string, unknown>, name: string): number | undefined {
  const text = textAt(search, name)
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** Leaves out what is `undefined`, so that it does not stand in an address or a request. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>
  }
}

/** The status of an answer as somebody types it; `undefined` for what is none. */
export const statusOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,3}$/.test(text) ? Number(text) : undefined

/** A filter that takes lists, with one value. */
export const one = (text: string | undefined): string[] | undefined => (text === undefined ? undefined : [text])
