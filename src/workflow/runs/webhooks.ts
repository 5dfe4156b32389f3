import { isObject, tryParseJson } from '../../base/index.js'

/** The step that has made a webhook says little besides the address. */
const LONGEST_STEP = 16_384
const MARK = '"CreateWebhook"'

/**
 * The event of the webhook that a step has made; `undefined` for any other step. The client makes the address by itself,
 * with an event id that nobody can guess: knowing it is what the webhook asks for instead of credentials.
 * @param body the step as it was sent.
 */
export function webhookOf(body: Uint8Array | undefined): string | undefined {
  if (!body || body.byteLength > LONGEST_STEP) return undefined
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!text.includes(MARK)) return undefined
  const step = tryParseJson(text.toString())
  if (!isObject(step) || step.stepType !== 'CreateWebhook') return undefined
  const made = typeof step.out === 'string' ? tryParseJson(step.out) : step.out
  return isObject(made) && typeof made.eventId === 'string' ? made.eventId : undefined
}
