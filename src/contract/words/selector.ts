/** The selector of a bulk action in words. */
import { counted } from './figures.js'

const FIELD_WORDS: Readonly<Record<string, string>> = {
  workflowUrl: 'URL',
  label: 'label',
  host: 'host',
  path: 'path',
  callerIp: 'caller',
  flowControlKey: 'flow-control key',
  fromDate: 'from',
  toDate: 'to',
  responseStatus: 'status',
  failureFunctionState: 'failure function',
  url: 'URL',
  queueName: 'queue',
  topicName: 'URL group',
  scheduleId: 'schedule',
  count: 'at most',
  actionId: 'cancelled by',
  waitingFor: 'waits for',
  olderThan: 'older than',
  youngerThan: 'younger than',
  attemptsAtLeast: 'failed attempts at least',
  attemptsAtMost: 'failed attempts at most',
  errorContains: 'error contains',
}

/** Fields that are not listed as filters: settings in records of older actions, and the way of matching a URL. */
const NO_FILTERS = new Set([
  'workflowUrlExactMatch',
  'reason',
  'ratePerSecond',
  'fenceUntil',
  'async',
  'report',
  'dryRun',
])

/** The kinds of actions on active runs, whose URLs are selected by their beginning. */
const BY_PREFIX = new Set(['cancelRuns', 'pauseRuns', 'unpauseRuns'])

/** Describes the selector of an action in one line. @param time formats a time, Unix milliseconds. */
export function selectorText(
  { kind, selector }: { readonly kind: string; readonly selector: Readonly<Record<string, unknown>> },
  time: (atMs: number) => string,
): string {
  const isPrefix = BY_PREFIX.has(kind) && selector.workflowUrlExactMatch !== true
  const filters = Object.entries(selector).filter(([name]) => !NO_FILTERS.has(name) && !name.endsWith('Total'))
  const parts = filters.map(([name, value]) => {
    if (name.endsWith('Ids') && Array.isArray(value))
      return counted(Number(selector[`${name}Total`] ?? value.length), 'ID')
    const word = name === 'workflowUrl' && isPrefix ? 'URL begins with' : FIELD_WORDS[name]
    return `${word ?? name} ${valueText(name, value, time)}`
  })
  return parts.length === 0 ? 'everything' : parts.join(', ')
}

function valueText(name: string, value: unknown, time: (atMs: number) => string): string {
  if ((name === 'fromDate' || name === 'toDate') && typeof value === 'number') return time(value)
  return Array.isArray(value) ? value.join(' or ') : String(value)
}
