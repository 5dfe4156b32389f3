/** JSON as text: numbers keep all their digits, which `JSON.parse` rounds. */

/** A string, a bracket or another sign, or a number or word. Each character can match in one way only. */
const TOKEN = /"(?:[^"\\]+|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g
/** Deeper JSON is not indented: the indentation would be longer than the JSON. */
const MAX_LEVELS = 100

/** Indents valid JSON without changing any of its values; `undefined` when it is nested too deeply. */
export function indentJson(json: string): string | undefined {
  let text = ''
  let levels = 0
  let before = ''
  for (const [token] of json.matchAll(TOKEN)) {
    const isAfterOpening = before === '{' || before === '['
    if (token === '}' || token === ']') {
      levels--
      if (!isAfterOpening) text += lineOf(levels)
    } else if (isAfterOpening || before === ',') text += lineOf(levels)
    if (token === '{' || token === '[') levels++
    if (levels > MAX_LEVELS) return undefined
    text += token === ':' ? ': ' : token
    before = token
  }
  return text
}

const lineOf = (levels: number): string => `\n${'  '.repeat(levels)}`

/** The first integer of valid JSON that `JSON.parse` would round. */
export function roundedIn(json: string): string | undefined {
  for (const [token] of json.matchAll(TOKEN)) {
    if (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))) return token
  }
  return undefined
}
