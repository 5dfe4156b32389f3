import { HomeportError } from '../contract/errors.js'
import { nestsDeeperThan } from './nesting.js'

/** Far more than any request needs, and far less than what a recursive function can stand. */
const MOST_LEVELS = 64
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads the JSON of a request body.
 * @throws HomeportError `invalid_json`; `invalid_request` when it nests too deep.
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (nestsDeeperThan(bytes, MOST_LEVELS)) {
    throw new HomeportError('invalid_request', {
      problem: `The request body nests lists and objects more than ${MOST_LEVELS} levels deep. Send a flatter one.`,
    })
  }
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch (error) {
    throw new HomeportError('invalid_json', { reason: error instanceof Error ? error.message : 'it cannot be read' })
  }
}
