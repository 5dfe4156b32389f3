/** Reads filters from URLs. Every value is checked: a URL may be typed by hand. */

/** A text parameter of a URL. The router parses a label such as 42 as a number, so numbers are accepted. */
export function textAt(search: Record<string, unknown>, name: string): string | undefined {
  const value = search[name]
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** A whole number of a URL. */
export function wholeAt(search: Record<string, unknown>, name: string): number | undefined {
  const text = textAt(search, name)
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** Leaves out `undefined` values, so that they are not in a URL or a request. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>
  }
}

/** The format of a field: a pattern of HTML, and an instruction. */
export interface Format {
  readonly pattern: string
  readonly enter: string
}

/** Whether a typed text is not empty and does not have the format. */
export const isWrong = (text: string, { pattern }: Format): boolean =>
  text.trim() !== '' && !new RegExp(`^(?:${pattern})$`).test(text)

/** The format of an HTTP status. */
export const STATUS_FORMAT: Format = { pattern: '\\s*\\d{1,3}\\s*', enter: 'Enter a status such as 500' }

/** A typed HTTP status; `undefined` for anything else. */
export const statusOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,3}$/.test(text) ? Number(text) : undefined

/** A list with one value, for a filter that expects a list. */
export const one = <Text extends string>(text: Text | undefined): Text[] | undefined =>
  text === undefined ? undefined : [text]
