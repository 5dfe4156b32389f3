/** Turns a stored message or run into the form and the request that send it again. */
import type { Static } from 'typebox'
import type { Message } from '../../../../src/contract/queue/fields.js'
import { NO_TRIGGER, type TriggerItem, type TriggerValues, triggerOf } from '../workflows/trigger-form.js'
import type { Run } from '../workflows/words.js'
import type { DeliveryValues } from './delivery-form.js'
import { type BatchItem, EMPTY, itemOf, type PublishValues } from './publish-form.js'
import type { Sendable } from './snippets.js'

type StoredMessage = Static<typeof Message>
type StoredHeaders = Readonly<Record<string, readonly string[]>>

/** Whether a value is stored. A redacted one is not, and cannot be sent again. */
const isKept = (value: string): boolean => !value.startsWith('REDACTED:')
/** Headers that the server sets. */
const OWN = /^(upstash-|content-type$|content-length$|host$|user-agent$|connection$)/i

/** The form of a message; a body that is not text is left out. */
export function valuesOfMessage(message: StoredMessage): PublishValues {
  const { flowControlKey = '', rate, parallelism, period, timeout } = message
  return {
    ...EMPTY,
    destination: message.topicName ?? message.url,
    method: message.method,
    body: textOf(message.body),
    contentType: contentTypeOf(message.header) ?? (message.body ? EMPTY.contentType : ''),
    headers: headerText(message.header),
    label: message.labels?.join(',') ?? '',
    queue: message.queueName ?? '',
    retries: message.maxRetries,
    timeout: timeout === undefined ? '' : `${Math.ceil(timeout / 1_000)}s`,
    callback: message.callback ?? '',
    failureCallback: message.failureCallback ?? '',
    flowKey: flowControlKey,
    flowValue: limitsOf({ rate, parallelism, period: period === undefined ? undefined : `${period}s` }),
    ...ownSettings(message),
  }
}

/** The request that would publish a message again. */
export function sendableOfMessage(message: StoredMessage): Sendable {
  const item: BatchItem = itemOf(valuesOfMessage(message))
  const { bodyBase64, retryDelayExpression: delay, header } = message
  const type = contentTypeOf(header)
  const headers = {
    ...item.headers,
    ...(type !== undefined && { 'content-type': type }),
    ...(delay !== undefined && { 'upstash-retry-delay': delay }),
  }
  return { kind: 'message', ...item, headers, ...(bodyBase64 !== undefined && { bodyBase64 }) }
}

/** The form of a run. */
export function valuesOfRun(run: Run): TriggerValues {
  const first = firstStepOf(run)
  return {
    ...NO_TRIGGER,
    url: run.workflowUrl,
    body: typeof first?.out === 'string' ? textOf(first.out) : '',
    headers: headerText(first?.headers ?? {}),
    label: run.labels?.join(',') ?? '',
    retries: first?.retries ?? '',
    flowKey: run.flowControlKey ?? '',
    ...ownSettings(run),
  }
}

/** Priority and singleton key. A debounce key is left out, because its delays are not known. */
function ownSettings({
  priority,
  singletonKey,
}: Pick<StoredMessage, 'priority' | 'singletonKey'>): Pick<DeliveryValues, 'priority' | 'rule' | 'ruleKey'> {
  const rule = singletonKey === undefined ? 'none' : 'skip'
  return { priority: priority ?? '', rule, ruleKey: singletonKey ?? '' }
}

/** The request that would trigger a run again. */
export function sendableOfRun(run: Run): Sendable {
  const item: TriggerItem = triggerOf(valuesOfRun(run))
  return { kind: 'run', ...item }
}

const firstStepOf = ({ steps }: Run) => steps[0]?.steps[0]

const textOf = (body = ''): string => (isKept(body) ? body : '')

function contentTypeOf(headers: StoredHeaders): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1][0]
}

function headerText(headers: StoredHeaders): string {
  return Object.entries(headers)
    .filter(([name]) => !OWN.test(name))
    .flatMap(([name, values]) => values.filter(isKept).map((value) => `${name}: ${value}`))
    .join('\n')
}

function limitsOf(limits: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(limits).filter(([, value]) => value !== undefined)
  return given.map(([name, value]) => `${name}=${value}`).join(',')
}
