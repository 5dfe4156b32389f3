import type { Static } from 'typebox'
import type { ManagedAccount } from '../accounts/operator.js'
import type { AlertState, AlertStatus } from '../alerts/alerts.js'
import type { BULK_STATES } from '../bulk/actions.js'
import type { Outcome } from '../bulk/answers.js'
import type { MESSAGE_STANDINGS, RUN_STANDINGS } from '../bulk/conditions.js'
import type { BACKUP_STATES, IMPORT_STATES } from '../databases/backups.js'
import type { DATABASE_STATES, DatabaseRecord, MODIFYING_STATES } from '../databases/databases.js'
import type { EVENT_STATES } from '../queue/fields.js'
import type { MOVE_STATES } from '../server/moves.js'
import type { NODE_STATES } from '../server/nodes.js'
import type { STANDBY_STATES } from '../server/standbys.js'
import type { Because } from '../workflow/because.js'
import type { FAILURE_STATES } from '../workflow/dead-letters.js'
import type { RUN_STATES, STEP_STATES } from '../workflow/run-states.js'
import type { RunEvent } from '../workflow/runs.js'

/**
 * The word for each state on the wire: the console and the command line show these words, and the documentation uses
 * them. A word is lower case, as in the middle of a sentence.
 */

/** What a state means to a reader: good, in progress, needs watching, bad, or nothing to do. */
export type Tone = 'ok' | 'busy' | 'warn' | 'bad' | 'idle'

/** The word for a state, with its tone. */
export interface StateWord {
  readonly word: string
  readonly tone: Tone
}

/** A word for every state of one kind of object. */
export type StateWords<State extends string> = Readonly<Record<State, StateWord>>

type OneOf<States extends readonly string[]> = States[number]

const ok = (word: string): StateWord => ({ word, tone: 'ok' })
const busy = (word: string): StateWord => ({ word, tone: 'busy' })
const warn = (word: string): StateWord => ({ word, tone: 'warn' })
const bad = (word: string): StateWord => ({ word, tone: 'bad' })
const idle = (word: string): StateWord => ({ word, tone: 'idle' })

/** `state` of a database. */
export const DATABASE_WORDS: StateWords<OneOf<typeof DATABASE_STATES>> = {
  active: ok('awake'),
  passive: idle('asleep'),
  suspended: bad('suspended'),
}

/** `modifying_state` of a database, which is shown instead of its state. */
export const CHANGE_WORDS: StateWords<Exclude<OneOf<typeof MODIFYING_STATES>, ''>> = {
  creating: busy('being created'),
  deleting: busy('being deleted'),
  updating_regions: busy('changing regions'),
  changing_plan: busy('changing plan'),
  backing_up: busy('backing up'),
  restoring: busy('restoring'),
}

/** The state of a database, or the change that is in progress. */
export const stateOfDatabase = ({
  state,
  modifying_state: change,
}: Pick<DatabaseRecord, 'state' | 'modifying_state'>): StateWord =>
  change === '' ? DATABASE_WORDS[state] : CHANGE_WORDS[change]

/** `state` of a backup. */
export const BACKUP_WORDS: StateWords<OneOf<typeof BACKUP_STATES>> = {
  pending: busy('pending'),
  completed: ok('completed'),
  failed: bad('failed'),
}

/** `state` of an import. */
export const IMPORT_WORDS: StateWords<OneOf<typeof IMPORT_STATES>> = {
  reading: busy('reading'),
  checking: busy('checking'),
  restoring: busy('restoring'),
  completed: ok('completed'),
  failed: bad('failed'),
}

/** `state` of an entry in the log of a message; the latest entry has the state of the message. */
export const MESSAGE_WORDS: StateWords<OneOf<typeof EVENT_STATES>> = {
  CREATED: idle('published'),
  ACTIVE: busy('sending'),
  ERROR: warn('attempt failed'),
  RETRY: warn('retrying'),
  DELIVERED: ok('delivered'),
  FAILED: bad('failed'),
  CANCEL_REQUESTED: idle('cancel requested'),
  CANCELED: idle('cancelled'),
}

/** `lastScheduleStates` of a schedule: the states of its last messages. */
export const FIRE_WORDS: StateWords<'IN_PROGRESS' | 'SUCCESS' | 'FAIL'> = {
  IN_PROGRESS: busy('pending'),
  SUCCESS: ok('delivered'),
  FAIL: bad('failed'),
}

/** Whether a schedule, a queue or a flow-control key is paused. */
export const pauseWord = (isPaused: boolean): StateWord => (isPaused ? warn('paused') : ok('running'))

/** `workflowState` of a run. */
export const RUN_WORDS: StateWords<OneOf<typeof RUN_STATES>> = {
  RUN_STARTED: busy('active'),
  RUN_SUCCESS: ok('succeeded'),
  RUN_FAILED: bad('failed'),
  RUN_CANCELED: idle('cancelled'),
}

/** `state` of a step. */
export const STEP_WORDS: StateWords<OneOf<typeof STEP_STATES>> = {
  STEP_PROGRESS: busy('active'),
  STEP_SUCCESS: ok('succeeded'),
  STEP_RETRY: warn('retrying'),
  STEP_FAILED: bad('failed'),
  STEP_CANCELED: idle('cancelled'),
}

/** `state` of an entry in the log of a run. */
export const RUN_EVENT_WORDS: StateWords<Static<typeof RunEvent>['state']> = {
  ...RUN_WORDS,
  ...STEP_WORDS,
  WAITER_ADDED: idle('waiting for an event'),
  INVOKED: busy('run invoked'),
}

/** `state` of the call of a failure function. */
export const FAILURE_WORDS: StateWords<OneOf<typeof FAILURE_STATES>> = {
  CALLBACK_INPROGRESS: busy('pending'),
  CALLBACK_SUCCESS: ok('succeeded'),
  CALLBACK_FAIL: bad('failed'),
  CALLBACK_CANCELED: idle('cancelled'),
}

/** `kind` of a reason why a run waits. */
export const WAIT_WORDS: StateWords<Static<typeof Because>['kind']> = {
  paused: warn('paused'),
  'bulk-cancel': warn('to be cancelled'),
  event: idle('waiting for an event'),
  webhook: idle('waiting for a webhook'),
  'invoked-run': idle('waiting for another run'),
  delayed: idle('delayed'),
  debounced: idle('debounced'),
  sleeping: idle('sleeping'),
  retry: warn('retrying'),
  'in-flight': busy('endpoint is running'),
  'flow-control': idle('waiting for flow control'),
  queued: idle('waiting for delivery'),
  'discarded-branch': bad('stuck'),
  'no-step': bad('stuck'),
}

/** The states by which a bulk action selects runs and messages. */
export const STANDING_WORDS: StateWords<OneOf<typeof RUN_STANDINGS> | OneOf<typeof MESSAGE_STANDINGS>> = {
  delayed: WAIT_WORDS.delayed,
  sleeping: WAIT_WORDS.sleeping,
  event: WAIT_WORDS.event,
  webhook: WAIT_WORDS.webhook,
  'invoked-run': WAIT_WORDS['invoked-run'],
  retry: WAIT_WORDS.retry,
  'in-delivery': busy('in delivery'),
  'no-step': WAIT_WORDS['no-step'],
  paused: WAIT_WORDS.paused,
  held: idle('waiting in its queue'),
}

/** `state` of a bulk action. */
export const BULK_WORDS: StateWords<OneOf<typeof BULK_STATES>> = {
  running: busy('running'),
  paused: warn('paused'),
  finished: ok('finished'),
  aborted: idle('aborted'),
}

/** `outcome` of an item of a bulk action, in display order. */
export const OUTCOME_WORDS: StateWords<Static<typeof Outcome>> = {
  cancelled: ok('cancelled'),
  resumed: ok('resumed'),
  restarted: ok('restarted'),
  deleted: ok('deleted'),
  retried: ok('sent again'),
  undone: ok('brought back'),
  paused: ok('paused'),
  unpaused: ok('unpaused'),
  alreadyFinished: idle('already ended'),
  notFound: idle('not found'),
  failed: bad('failed'),
  skipped: idle('skipped'),
  pending: busy('pending'),
}

/** `state` of a node. */
export const NODE_WORDS: StateWords<OneOf<typeof NODE_STATES>> = {
  live: ok('live'),
  draining: busy('draining'),
  dead: bad('dead'),
  left: idle('left'),
}

/** `state` of a standby. */
export const STANDBY_WORDS: StateWords<OneOf<typeof STANDBY_STATES>> = {
  asked: idle('requested'),
  copying: busy('copying'),
  following: ok('following'),
  behind: bad('behind'),
}

/** `state` of a move of a database to another node. */
export const MOVE_WORDS: StateWords<OneOf<typeof MOVE_STATES>> = {
  asked: idle('requested'),
  copying: busy('copying'),
  switched: busy('switched'),
  aborted: idle('aborted'),
  done: ok('finished'),
  failed: bad('failed'),
}

/** `state` of an account. */
export const ACCOUNT_WORDS: StateWords<ManagedAccount['state']> = {
  active: ok('active'),
  suspended: bad('suspended'),
  deleting: busy('being deleted'),
}

/** `status` of an alert. */
export const ALERT_WORDS: StateWords<AlertStatus> = {
  event: warn('event'),
  firing: bad('firing'),
  resolved: ok('resolved'),
}

/** `state` of an alert: the outcome of its notification. */
export const NOTIFICATION_WORDS: StateWords<AlertState> = {
  pending: busy('pending'),
  sent: ok('sent'),
  held_back: warn('held back'),
  silenced: idle('silenced'),
  no_channel: idle('no channel'),
}
