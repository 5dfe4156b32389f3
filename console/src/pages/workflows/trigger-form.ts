/** The form that triggers a run: values, validation, and the request. */
import type { Static } from 'typebox'
import type { triggerRuns } from '../../../../src/contract/workflow/runs.js'
import {
  contentTypeOf,
  DELIVERY_RULES,
  type DeliveryValues,
  headersOf,
  isUrl,
  NO_DELIVERY,
  WRITE_URL,
} from '../queue/delivery-form.js'

/** An item of the batch operation. */
export type TriggerItem = Static<(typeof triggerRuns)['body']['schema']>[number]

/** The values of the form. */
export interface TriggerValues extends DeliveryValues {
  readonly url: string
  readonly runId: string
}

/** The setting that names the run. */
export const RUN_ID = 'upstash-workflow-runid'

/** An empty form. */
export const NO_TRIGGER: TriggerValues = { ...NO_DELIVERY, url: '', runId: '' }

/** Validation while typing; the server validates again. */
export const TRIGGER_RULES = {
  ...DELIVERY_RULES,
  url: (text: string) => (isUrl(text) ? null : WRITE_URL),
  runId: (text: string) =>
    /^[^\s/]{0,512}$/.test(text.trim()) ? null : 'Use up to 512 characters, without spaces and slashes',
}

/** The item of a form. Settings of runs are headers (reference workflow 4.2). */
export function triggerOf(values: TriggerValues): TriggerItem {
  return {
    destination: values.url.trim(),
    headers: headersOf(values, [
      ['content-type', contentTypeOf(values.body)],
      [RUN_ID, values.runId],
    ]),
    ...(values.body !== '' && { body: values.body }),
  }
}
