/** What the form for triggering asks for, and what it makes of it. */
import type { Static } from 'typebox'
import type { triggerRuns } from '../../../../src/contract/workflow.js'
import { EMPTY, forwarded, PUBLISH_RULES } from '../queue/publish-form.js'

/** A run as the operation for many takes it. */
export type TriggerItem = Static<(typeof triggerRuns)['body']['schema']>[number]

/** What stands in the fields. */
export interface TriggerValues {
  readonly url: string
  readonly body: string
  readonly runId: string
  readonly label: string
  readonly delay: string
  readonly retries: number | ''
  readonly flowKey: string
  readonly flowValue: string
  readonly failureCallback: string
  /** One a line: `Name: value`. */
  readonly headers: string
}

/** An empty form. */
export const NO_TRIGGER: TriggerValues = {
  url: '',
  body: '',
  runId: '',
  label: '',
  delay: '',
  retries: '',
  flowKey: '',
  flowValue: '',
  failureCallback: '',
  headers: '',
}

/** The rules while typing; the server has the last word. */
export const TRIGGER_RULES = {
  url: (text: string) =>
    /^https?:\/\/[^/]/.test(text.trim()) && URL.canParse(text.trim())
      ? null
      : 'Write a URL that begins with http:// or https://',
  runId: (text: string) => (/^[^\s/]{0,512}$/.test(text.trim()) ? null : 'Up to 512 characters, no spaces and slashes'),
  delay: PUBLISH_RULES.delay,
  failureCallback: PUBLISH_RULES.failureCallback,
  headers: PUBLISH_RULES.headers,
}

const isJson = (body: string): boolean => PUBLISH_RULES.body(body, EMPTY) === null

/** The item of a filled form. Settings of runs are headers (reference workflow 4.2). */
export function triggerOf(values: TriggerValues): TriggerItem {
  const settings: readonly (readonly [string, string | number])[] = [
    ['content-type', values.body === '' ? '' : isJson(values.body) ? 'application/json' : 'text/plain'],
    ['upstash-workflow-runid', values.runId],
    ['upstash-label', values.label],
    ['upstash-delay', values.delay],
    ['upstash-retries', values.retries],
    ['upstash-flow-control-key', values.flowKey],
    ['upstash-flow-control-value', values.flowKey.trim() === '' ? '' : values.flowValue],
    ['upstash-failure-callback', values.failureCallback],
  ]
  const chosen = settings
    .map(([name, value]) => [name, String(value).trim()] as const)
    .filter(([, value]) => value !== '')
  return {
    destination: values.url.trim(),
    headers: { ...Object.fromEntries(chosen), ...forwarded(values.headers) },
    ...(values.body !== '' && { body: values.body }),
  }
}
