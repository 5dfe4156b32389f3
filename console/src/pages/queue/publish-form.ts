/** What the form for publishing asks for, and what it makes of it. */
import type { Static } from 'typebox'
import type { publishBatch } from '../../../../src/contract/queue.js'

/** An item as the operation for batches takes it. */
export type BatchItem = Static<(typeof publishBatch)['body']['schema']>[number]

/** What stands in the fields. */
export interface PublishValues {
  readonly destination: string
  readonly queue: string
  readonly method: string
  readonly contentType: string
  readonly body: string
  /** One a line: `Name: value`. */
  readonly headers: string
  readonly delay: string
  readonly retries: number | ''
  readonly timeout: string
  readonly label: string
  readonly callback: string
  readonly failureCallback: string
  readonly dedupId: string
  readonly flowKey: string
  readonly flowValue: string
}

/** An empty form. */
export const EMPTY: PublishValues = {
  destination: '',
  queue: '',
  method: 'POST',
  contentType: 'application/json',
  body: '',
  headers: '',
  delay: '',
  retries: '',
  timeout: '',
  label: '',
  callback: '',
  failureCallback: '',
  dedupId: '',
  flowKey: '',
  flowValue: '',
}

const DURATION = /^(\d+[smhd]?)+$/
const GROUP = /^[\w.-]+$/

const isUrl = (text: string): boolean => /^https?:\/\/[^/]/.test(text) && URL.canParse(text)

const durationProblem = (text: string): string | null =>
  text.trim() === '' || DURATION.test(text.trim()) ? null : 'Write a duration such as 10s, 5m or 1h30m'

const urlProblem = (text: string): string | null =>
  text.trim() === '' || isUrl(text.trim()) ? null : 'Write a URL that begins with http:// or https://'

/** The lines that are no headers. */
function badLines(headers: string): string[] {
  return headers.split('\n').filter((line) => line.trim() !== '' && !/^[!#$%&'*+.^_`|~\w-]+\s*:/.test(line.trim()))
}

/** The rules while typing; the server has the last word. */
export const PUBLISH_RULES = {
  destination: (text: string) =>
    isUrl(text.trim()) || GROUP.test(text.trim())
      ? null
      : 'Write a URL that begins with http:// or https://, or the name of a URL group',
  body: (body: string, { contentType }: PublishValues) => (isBrokenJson(body, contentType) ? 'This is not JSON' : null),
  headers: (headers: string) => (badLines(headers).length === 0 ? null : `No header: ${badLines(headers)[0]}`),
  delay: durationProblem,
  timeout: durationProblem,
  callback: urlProblem,
  failureCallback: urlProblem,
}

function isBrokenJson(body: string, contentType: string): boolean {
  if (body.trim() === '' || contentType !== 'application/json') return false
  try {
    JSON.parse(body)
    return false
  } catch {
    return true
  }
}

/** The item of a filled form. Settings of messages are headers (reference queue 2.2). */
export function itemOf(values: PublishValues): BatchItem {
  const settings: readonly (readonly [string, string | number])[] = [
    ['content-type', values.body === '' ? '' : values.contentType],
    ['upstash-method', values.method],
    ['upstash-delay', values.delay],
    ['upstash-retries', values.retries],
    ['upstash-timeout', values.timeout],
    ['upstash-label', values.label],
    ['upstash-callback', values.callback],
    ['upstash-failure-callback', values.failureCallback],
    ['upstash-deduplication-id', values.dedupId],
    ['upstash-flow-control-key', values.flowKey],
    ['upstash-flow-control-value', values.flowKey.trim() === '' ? '' : values.flowValue],
  ]
  const given = settings
    .map(([name, value]) => [name, String(value).trim()] as const)
    .filter(([, value]) => value !== '')
  return {
    destination: values.destination.trim(),
    headers: { ...Object.fromEntries(given), ...forwarded(values.headers) },
    ...(values.body !== '' && { body: values.body }),
    ...(values.queue.trim() !== '' && { queue: values.queue.trim() }),
  }
}

/** Headers that the destination gets, one a line, as settings of a message. */
export function forwarded(headers: string): Record<string, string> {
  const lines = headers.split('\n').filter((line) => line.includes(':'))
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [`upstash-forward-${line.slice(0, colon).trim()}`, line.slice(colon + 1).trim()]
    }),
  )
}
