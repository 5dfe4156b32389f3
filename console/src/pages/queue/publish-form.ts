/** The form that publishes a message: values, validation, and the request. */
import type { Static } from 'typebox'
import type { publishBatch } from '../../../../src/contract/queue/messages.js'
import {
  DELIVERY_RULES,
  type DeliveryValues,
  durationProblem,
  headersOf,
  isJson,
  isUrl,
  NO_DELIVERY,
  urlProblem,
  WRITE_URL,
} from './delivery-form.js'

/** An item of the batch operation. The form leaves out absent fields instead of setting `null`. */
export type BatchItem = { [Field in keyof WireItem]: Exclude<WireItem[Field], null> }
type WireItem = Static<(typeof publishBatch)['body']['schema']>[number]

/** The values of the form. */
export interface PublishValues extends DeliveryValues {
  readonly destination: string
  readonly queue: string
  readonly method: string
  readonly contentType: string
  readonly timeout: string
  readonly callback: string
  readonly dedupId: string
}

/** The setting that drops duplicates. */
export const DEDUPLICATION_ID = 'upstash-deduplication-id'

/** An empty form. */
export const EMPTY: PublishValues = {
  ...NO_DELIVERY,
  destination: '',
  queue: '',
  method: 'POST',
  contentType: 'application/json',
  timeout: '',
  callback: '',
  dedupId: '',
}

const GROUP = /^[\w.-]+$/

/** Validation while typing; the server validates again. */
export const PUBLISH_RULES = {
  ...DELIVERY_RULES,
  destination: (text: string) =>
    isUrl(text) || GROUP.test(text.trim()) ? null : `${WRITE_URL}, or the name of a URL group`,
  body: (body: string, { contentType }: PublishValues) =>
    body.trim() === '' || contentType !== 'application/json' || isJson(body) ? null : 'The body is not valid JSON',
  timeout: durationProblem,
  callback: urlProblem,
}

/** The item of a form. Settings of messages are headers (reference queue 2.2). */
export function itemOf(values: PublishValues): BatchItem {
  const headers = headersOf(values, [
    ['content-type', values.body === '' ? '' : values.contentType],
    ['upstash-method', values.method],
    ['upstash-timeout', values.timeout],
    ['upstash-callback', values.callback],
    [DEDUPLICATION_ID, values.dedupId],
  ])
  return {
    destination: values.destination.trim(),
    headers,
    ...(values.body !== '' && { body: values.body }),
    ...(values.queue.trim() !== '' && { queue: values.queue.trim() }),
  }
}
