import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok } from '../endpoint.js'
import { MAX_ALERT_TEXT_LENGTH } from './alerts.js'
import { kind, seconds, shared, storeErrors, text, writeErrors, written } from './fields.js'
import { MAX_SILENCE_DAYS, MAX_SILENCES } from './kinds.js'

/** The wire of silences. Times are Unix seconds. */

/** A silence: matching alerts are not sent until it ends. */
export const SilenceSchema = Type.Object({
  silence_id: text('Identifier of the silence.'),
  kind: Type.Optional(text('The rule that is silenced; absent: all of them.')),
  subject: Type.Optional(text('The subject that is silenced; absent: all of them.')),
  until: seconds('When it ends.'),
  reason: text('The reason; empty if none was given.'),
  actor: text('E-mail of the person who created it.'),
  creation_time: seconds('When it was created.'),
})
/** A silence as the API shows it. */
export type Silence = Static<typeof SilenceSchema>

/** Lists the silences. */
export const listSilences = endpoint({
  ...shared,
  id: 'listSilences',
  method: 'GET',
  path: '/v2/alerts/silences',
  access: 'read',
  summary: 'List silences',
  description: 'Silences that have not ended, ordered by their end.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The silences.', body: Type.Array(SilenceSchema) },
  errors: storeErrors,
})

const CreateSilenceSchema = Type.Object(
  {
    kind: Type.Optional(kind('Silence this rule only. Absent: all of them.')),
    subject: Type.Optional(written('Silence this subject only, as the history spells it. Absent: all of them.', 500)),
    until: Type.Integer({
      minimum: 1,
      maximum: 100_000_000_000,
      description: `When it ends, Unix seconds: in the future, at most ${MAX_SILENCE_DAYS} days away.`,
    }),
    reason: Type.Optional(written('The reason for the silence.', MAX_ALERT_TEXT_LENGTH)),
  },
  { additionalProperties: false },
)
/** The body that creates a silence. */
export type CreateSilenceBody = Static<typeof CreateSilenceSchema>

/** Creates a silence. */
export const createSilence = endpoint({
  ...shared,
  id: 'createSilence',
  method: 'POST',
  path: '/v2/alerts/silences',
  access: 'write',
  summary: 'Silence alerts',
  description: `Matching alerts are kept in the history but not sent. An account or team may have ${MAX_SILENCES} silences.`,
  body: { kind: 'json', schema: CreateSilenceSchema },
  success: { status: 200, description: 'The new silence.', body: SilenceSchema },
  errors: ['alert_silence_limit', ...writeErrors],
})

/** Ends a silence. */
export const deleteSilence = endpoint({
  ...shared,
  id: 'deleteSilence',
  method: 'DELETE',
  path: '/v2/alerts/silences/{id}',
  access: 'write',
  summary: 'End a silence',
  description: 'New alerts are sent again. Alerts that were silenced are not sent afterwards.',
  params: Type.Object({ id: text('`silence_id` of the silence.') }),
  body: noFields,
  success: ok,
  errors: ['alert_silence_not_found', ...writeErrors],
})
