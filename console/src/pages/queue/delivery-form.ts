/** The delivery settings that the forms of messages and runs share; requests carry them as headers. */

/** The values of the form. */
export interface DeliveryValues {
  readonly body: string
  readonly label: string
  readonly delay: string
  readonly retries: number | ''
  readonly failureCallback: string
  readonly flowKey: string
  readonly flowValue: string
  /** One per line: `Name: value`. */
  readonly headers: string
  /** Seconds that the message counts as due earlier. */
  readonly priority: number | ''
  readonly rule: Rule
  readonly ruleKey: string
  /** For a debounce key: how long to wait for a newer one, and how long at most. */
  readonly debounceDelay: string
  readonly debounceMaxDelay: string
}

/**
 * The rule for messages with the same key. `debounce`: a newer one replaces this one. `skip`: this one is skipped if there
 * is an older one. `cancel`: this one cancels an older one.
 */
export type Rule = 'none' | 'debounce' | 'skip' | 'cancel'

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
  priority: '',
  rule: 'none',
  ruleKey: '',
  debounceDelay: '',
  debounceMaxDelay: '',
}

const DURATION = /^(\d+[smhd]?)+$/

/** Whether a text is a URL that can be delivered to. */
export const isUrl = (text: string): boolean => /^https?:\/\/[^/]/.test(text.trim()) && URL.canParse(text.trim())

/** The error of a field that is not a URL. */
export const WRITE_URL = 'Enter a URL that begins with http:// or https://'

/** Validation of optional fields while typing; the server validates again. */
export const durationProblem = (text: string): string | null =>
  text.trim() === '' || DURATION.test(text.trim()) ? null : 'Enter a duration such as 10s, 5m or 1h30m'

/** The same for URLs. */
export const urlProblem = (text: string): string | null => (text.trim() === '' || isUrl(text) ? null : WRITE_URL)

/** The lines that are not headers. */
function badLines(headers: string): string[] {
  return headers.split('\n').filter((line) => line.trim() !== '' && !/^[!#$%&'*+.^_`|~\w-]+\s*:/.test(line.trim()))
}

/** The rules of the common fields. */
export const DELIVERY_RULES = {
  delay: durationProblem,
  failureCallback: urlProblem,
  headers: (headers: string) => (badLines(headers).length === 0 ? null : `Not a header: ${badLines(headers)[0]}`),
  ruleKey: (key: string, { rule }: Pick<DeliveryValues, 'rule'>) =>
    rule === 'none' || key.trim() !== '' ? null : 'Enter the key',
  debounceDelay: (text: string, { rule }: Pick<DeliveryValues, 'rule'>) =>
    rule === 'debounce' && text.trim() === '' ? 'Enter how long to wait, such as 30s' : durationProblem(text),
  debounceMaxDelay: durationProblem,
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

/** The default content type of a body; empty without one. */
export const contentTypeOf = (body: string): string =>
  body === '' ? '' : isJson(body) ? 'application/json' : 'text/plain'

/** A header. One with an empty value is left out. */
type Setting = readonly [name: string, value: string | number]

/** The headers of a form: its `own` settings, the shared ones, and the forwarded headers. */
export function headersOf(values: DeliveryValues, own: readonly Setting[]): Record<string, string> {
  const settings: readonly Setting[] = [
    ...own,
    ['upstash-label', values.label],
    ['upstash-delay', values.delay],
    ['upstash-retries', values.retries],
    ['upstash-failure-callback', values.failureCallback],
    ['upstash-flow-control-key', values.flowKey],
    ['upstash-flow-control-value', values.flowKey.trim() === '' ? '' : values.flowValue],
    ['homeport-priority', values.priority],
    ...ruleSettings(values),
  ]
  const given = settings
    .map(([name, value]) => [name, String(value).trim()] as const)
    .filter(([, value]) => value !== '')
  return { ...Object.fromEntries(given), ...forwarded(values.headers) }
}

function ruleSettings({ rule, ruleKey, debounceDelay, debounceMaxDelay }: DeliveryValues): readonly Setting[] {
  switch (rule) {
    case 'none':
      return []
    case 'debounce':
      return [
        ['homeport-debounce', ruleKey],
        ['homeport-debounce-delay', debounceDelay],
        ['homeport-debounce-max-delay', debounceMaxDelay],
      ]
    case 'skip':
      return [['homeport-singleton', ruleKey]]
    case 'cancel':
      return [
        ['homeport-singleton', ruleKey],
        ['homeport-singleton-mode', rule],
      ]
  }
}

/** Forwarded headers, one per line, as headers of a publish request (reference queue 2.2). */
function forwarded(headers: string): Record<string, string> {
  const lines = headers.split('\n').filter((line) => line.includes(':'))
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [`upstash-forward-${line.slice(0, colon).trim()}`, line.slice(colon + 1).trim()]
    }),
  )
}
