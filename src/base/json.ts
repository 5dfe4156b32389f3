/** Parses JSON from outside; `undefined` when the text is not JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether a value is an object or an array, so that its members can be read. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Characters of a text, or of all texts in a list or an object. */
export function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (!isObject(value) || ArrayBuffer.isView(value)) return 0
  let characters = 0
  for (const member of Object.values(value)) characters += charactersIn(member)
  return characters
}
