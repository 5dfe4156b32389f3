import { tryParseJson } from '../base/index.js'
import { asObject, parseJson } from './invoke.js'

/**
 * What a program has thrown, by its failing answer: SDKs answer with a JSON object that has it as `message`. When this
 * server has refused a request of the SDK, that is the JSON of the refusal, of which only the text is for people.
 */
export function thrownIn(body: Uint8Array | null): string | undefined {
  const message = asObject(parseJson(body ?? undefined))?.message
  if (typeof message !== 'string' || message === '') return undefined
  const refusal = asObject(tryParseJson(message))?.error
  return typeof refusal === 'string' ? refusal : message
}
