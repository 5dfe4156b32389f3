/** What messages and runs have in common where they are made by hand: settings of deliveries, which are headers. */

/** What stands in the fields. */
export interface DeliveryValues {
  readonly body: string
  readonly label: string
  readonly delay: string
  readonly retries: number | ''
  readonly failureCallback: string
  readonly flowKey: string
  readonly flowValue: string
  /** One a line: `Name: value`. */
  readonly headers: string
}

/** Empty fields. */
export const NO_DELIVERY: DeliveryValues = {
  body: '',
  label: '',
  delay: '',
  retries: '',
  failureCallback: '',
  flowKey: '',
  flowValue: '',
  headers: '',
}

const DURATION = /^(\d+[smhd]?)+$/

/** Whether a text is a URL that can be delivered to. */
export const isUrl = (text: string): boolean => /^https?:\/\/[^/]/.test(text.trim()) && URL.canParse(text.trim())

/** What to write instead of what is no URL. */
export const WRITE_URL = 'Write a URL that begins with http:// or https://'

/** Rules of optional fields while typing; the server has the last word. */
export const durationProblem = (text: string): string | null =>
  text.trim() === '' || DURATION.test(text.trim()) ? null : 'Write a duration such as 10s, 5m or 1h30m'

/** The same for URLs. */
export const urlProblem = (text: string): string | null => (text.trim() === '' || isUrl(text) ? null : WRITE_URL)

/** The lines that are no headers. */
function badLines(headers: string): string[] {
  return headers.split('\n').filter((line) => line.trim() !== '' && !/^[!#$%&'*+.^_`|~\w-]+\s*:/.test(line.trim()))
}

/** The rules of the common fields. */
export const DELIVERY_RULES = {
  delay: durationProblem,
  failureCallback: urlProblem,
  headers: (headers: string) => (badLines(headers).length === 0 ? null : `No header: ${badLines(headers)[0]}`),
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** What a body is, for those who do not say; empty for none. */
export const contentTypeOf = (body: string): string =>
  body === '' ? '' : isJson(body) ? 'application/json' : 'text/plain'

/** Headers by name; what is empty is left to the server. */
type Setting = readonly [name: string, value: string | number]

/** The headers of a filled form: `own` settings of what is made, those that are shared, and what is forwarded. */
export function headersOf(values: DeliveryValues, own: readonly Setting[]): Record<string, string> {
  const settings: readonly Setting[] = [
    ...own,
    ['upstash-label', values.label],
    ['upstash-delay', values.delay],
    ['upstash-retries', values.retries],
    ['upstash-failure-callback', values.failureCallback],
    ['upstash-flow-control-key', values.flowKey],
    ['upstash-flow-control-value', values.flowKey.trim() === '' ? '' : values.flowValue],
  ]
  const given = settings
    .map(([name, value]) => [name, String(value).trim()] as const)
    .filter(([, value]) => value !== '')
  return { ...Object.fromEntries(given), ...forwarded(values.headers) }
}

/** Headers that the destination gets, one a line, as settings of a message (reference queue 2.2). */
function forwarded(headers: string): Record<string, string> {
  const lines = headers.split('\n').filter((line) => line.includes(':'))
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [`upstash-forward-${line.slice(0, colon).trim()}`, line.slice(colon + 1).trim()]
    }),
  )
}
