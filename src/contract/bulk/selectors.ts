import Type from 'typebox'
import { DESTINATION_FILTERS, FILTERS } from '../queue/fields.js'
import { MAX_FILTER_VALUES, MAX_IDS } from '../request-limits.js'
import { RUN_DEAD_FILTERS } from '../workflow/dead-letters.js'
import { CONDITIONS, type ItemsOf } from './conditions.js'

/** The selectors of bulk actions by kind. An item must match all filters that are given. */

const ids = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: MAX_IDS, description }))
const count = Type.Optional(Type.Integer({ minimum: 0, description: 'At most this many items. Absent: no limit.' }))
const responseStatus = Type.Optional(
  Type.Array(Type.Integer(), { maxItems: MAX_FILTER_VALUES, description: 'Status of the last response.' }),
)
const { label, flowControlKey, callerIp, fromDate, toDate } = FILTERS
const strict = { additionalProperties: false }

const Messages = Type.Object(
  {
    messageIds: ids('Only these messages. All other filters are ignored.'),
    ...FILTERS,
    ...DESTINATION_FILTERS,
    ...CONDITIONS.messages,
    count,
  },
  strict,
)

const DeadLetters = Type.Object(
  {
    dlqIds: ids('Only these dead letters. All other filters are ignored.'),
    messageId: ids('Dead letters of these messages.'),
    ...FILTERS,
    responseStatus,
    ...CONDITIONS.deadLetters,
    count,
  },
  strict,
)

const DeadRuns = Type.Object(
  {
    dlqIds: ids('Only these dead letters. All other filters are ignored.'),
    ...RUN_DEAD_FILTERS,
    label,
    flowControlKey,
    callerIp,
    fromDate,
    toDate,
    responseStatus,
    ...CONDITIONS.deadRuns,
    count,
  },
  strict,
)

/** Only dead runs whose failure function has failed: no other failure function can be called again. */
const FailedCallbacks = Type.Object(
  {
    ...DeadRuns.properties,
    failureFunctionState: Type.Optional(
      Type.Array(Type.Enum(['CALLBACK_FAIL']), {
        minItems: 1,
        description: 'Optional, because the action selects only this state.',
      }),
    ),
  },
  strict,
)

const actionId = Type.Optional(
  Type.String({
    minLength: 1,
    description: 'Only items that this finished cancel has cancelled. Not together with ids.',
  }),
)
const CancelledRuns = Type.Object({ actionId, workflowRunIds: ids('Only these cancelled runs.') }, strict)
const CancelledMessages = Type.Object({ actionId, messageIds: ids('Only these cancelled messages.') }, strict)

/** Selector schemas by kind. Those of active runs use `CancelSelector`. */
export const BULK_SELECTORS = {
  cancelMessages: Messages,
  resumeRuns: DeadRuns,
  restartRuns: DeadRuns,
  retryFailureCallbacks: FailedCallbacks,
  deleteDeadRuns: DeadRuns,
  deleteDeadLetters: DeadLetters,
  retryDeadLetters: DeadLetters,
  undoCancelRuns: CancelledRuns,
  undoCancelMessages: CancelledMessages,
} as const

/** The kinds that undo a cancel; the cancel determines their items. */
type UndoKind = 'undoCancelRuns' | 'undoCancelMessages'

/** The kinds that take the selector of a bulk cancel. */
export type ActiveRunsKind = 'cancelRuns' | 'pauseRuns' | 'unpauseRuns'

/** The items of each kind, which decide the conditions that its selector may have. */
export const ITEMS_OF = {
  cancelRuns: 'runs',
  pauseRuns: 'runs',
  unpauseRuns: 'runs',
  cancelMessages: 'messages',
  resumeRuns: 'deadRuns',
  restartRuns: 'deadRuns',
  retryFailureCallbacks: 'deadRuns',
  deleteDeadRuns: 'deadRuns',
  deleteDeadLetters: 'deadLetters',
  retryDeadLetters: 'deadLetters',
} as const satisfies Record<Exclude<keyof typeof BULK_SELECTORS, UndoKind> | ActiveRunsKind, ItemsOf>

/** A kind whose selector may have conditions, and may be saved. */
export type SelectingKind = keyof typeof ITEMS_OF
/** All kinds whose selector may have conditions. */
export const SELECTING_KINDS = Object.keys(ITEMS_OF) as SelectingKind[]
