import Type from 'typebox'
import { MAX_FILTER_VALUES, MAX_VALUE_LENGTH } from '../request-limits.js'

/**
 * Conditions that a selector may have beside the filters of the SDKs. They are tested on the items that pass the
 * filters.
 */

/** States by which a selector finds active runs: kinds of `because`; `in-delivery` stands for all deliveries that are due. */
export const RUN_STANDINGS = [
  'delayed',
  'sleeping',
  'event',
  'webhook',
  'invoked-run',
  'retry',
  'in-delivery',
  'no-step',
  'paused',
] as const

/** States by which a selector finds pending messages. */
export const MESSAGE_STANDINGS = ['held', 'delayed', 'retry', 'in-delivery'] as const

const texts = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: MAX_VALUE_LENGTH }), {
      minItems: 1,
      maxItems: MAX_FILTER_VALUES,
      description,
    }),
  )
const states = (values: readonly string[], description: string) =>
  Type.Optional(Type.Array(Type.Enum([...values]), { minItems: 1, maxItems: MAX_FILTER_VALUES, description }))
const duration = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 40, description }))
const attempts = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))

/** Conditions on every kind of item. */
const SHARED = {
  olderThan: duration(
    'Items created, or dead letters failed, longer ago than this duration when the request arrives, such as `2h` or `1d12h`.',
  ),
  youngerThan: duration(
    'Items created, or dead letters failed, more recently than this duration before the request arrives.',
  ),
  attemptsAtLeast: attempts('Items with at least this many failed attempts of the delivery.'),
  attemptsAtMost: attempts('Items with at most this many failed attempts of the delivery.'),
  errorContains: texts(
    'The error of the last failed attempt, or the first 4 KiB of its response, contains one of these texts, case-sensitive.',
  ),
  payload: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 2_000,
      description: 'An expression over the JSON payload, such as `$.order.total > 100 and $.country = "DE"`.',
    }),
  ),
}

/** The conditions of each type of item. */
export const CONDITIONS = {
  runs: {
    state: states(
      RUN_STANDINGS,
      'What a run waits for; with parallel branches, at least one branch does. `paused`: the run is paused, regardless of what it waits for.',
    ),
    waitingFor: texts('Id of an event or webhook, id of an invoked run, or name of the step that the run is at.'),
    ...SHARED,
  },
  messages: { state: states(MESSAGE_STANDINGS, 'What a message waits for.'), ...SHARED },
  deadRuns: SHARED,
  deadLetters: SHARED,
} as const

/** The type of the items of a set. */
export type ItemsOf = keyof typeof CONDITIONS

/** Names of all conditions. */
export const CONDITION_NAMES = Object.keys(CONDITIONS.runs) as (keyof typeof CONDITIONS.runs)[]
