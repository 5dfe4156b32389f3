import type { Assigned } from './assigned.js'

/** Where a run stands. Every arrow leads from `RUN_STARTED` to one of the other three, which are final. */
export type RunState = 'RUN_STARTED' | 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED'

/**
 * What is known of the program at the run's URL: a run that was triggered without an SDK is `unknown` until its
 * program has answered the first contact; every other run is `known`.
 */
export type RunContact = 'unknown' | 'known'

/** Where the failure callback of a failed run stands. */
export type FailureState = 'CALLBACK_INPROGRESS' | 'CALLBACK_SUCCESS' | 'CALLBACK_FAIL' | 'CALLBACK_CANCELED'

/** What an element of a run's list is. Only `step` elements are part of what the SDK replays. */
export type ElementKind = 'step' | 'toCallback' | 'fromCallback' | 'failureCall'

/**
 * A run: one execution of a workflow. Kept narrow, because bulk actions read and change many: the trigger's
 * configuration stands with the first element of the list.
 */
export interface RunsTable {
  /** The order of creation; messages name it as their `group_key`. */
  seq: Assigned<number>
  run_id: string
  account_id: string
  /** The endpoint, as the trigger gave it. */
  url: string
  /** Host (with port) and path of `url`, for filters. */
  host: string
  path: string
  state: RunState
  contact: RunContact
  created_at: number
  /** Set when the state is final. */
  finished_at: number | null
  /** `|a|b|`, or empty when there is none. */
  labels: string
  flow_key: string | null
  caller_ip: string
  /** The text that a successful run returned. */
  response: string | null
  /** Of `response`; see `checksum.ts`. */
  response_crc: number | null
  /** JSON of what failed; set with `RUN_FAILED`. */
  failure: string | null
  /** Status of the answer that failed the run, 0 when there was none. */
  failure_status: number | null
  /** NULL also when the failed run has no failure callback. */
  failure_state: FailureState | null
  /** `<finished_at>-<message seq>` while a failed run is in the dead letter queue. */
  dlq_id: string | null
  /** The bulk action that cancelled it, as `bulk_actions.seq`; NULL also when the run was cancelled alone. */
  canceled_by: number | null
  /** Of a failed run that was resumed, the run that goes on in its place, as `runs.seq`. */
  resumed_as: number | null
  /** The run that invoked this one, and JSON of how to tell it of the end. */
  parent_seq: number | null
  parent: string | null
}

/** The append-only list of a run. Position 0 is the initial payload. */
export interface StepsTable {
  run_seq: number
  position: number
  /** The message whose arrival this element causes. */
  message_id: string
  kind: ElementKind
  /** Bytes as they came; never looked into, except to show them. */
  body: Uint8Array
  /** Of the body. */
  body_crc: number | null
  /** JSON of `ElementMeta`: at position 0 the trigger's settings; for others what differs from them. */
  meta: string | null
  created_at: number
}

/** A run that waits for an event. Its timeout is a pending message. */
export interface RunWaitsTable {
  seq: Assigned<number>
  account_id: string
  run_seq: number
  event_id: string
  /** The message that fires at the deadline. */
  message_id: string
  /** JSON: the step to append, where to and with which headers. */
  wait: string
  /** Unix milliseconds. */
  deadline: number
  created_at: number
}

/** An event that came for a run before the run waited for it. */
export interface RunEventsTable {
  seq: Assigned<number>
  run_seq: number
  event_id: string
  /** What the waiting step gets as its `out`, decoded. */
  data: Uint8Array
  /** Of the data. */
  data_crc: number | null
  created_at: number
}

/** A webhook that a run has made. Its event id is a random text of the client, which nobody knows who has not the address. */
export interface RunWebhooksTable {
  run_seq: number
  event_id: string
}

/**
 * What was still to come of a run when it failed: each message that was to be delivered, the failed one among them, and
 * each wait. Kept as long as the run can be resumed.
 */
export interface RunRemainsTable {
  seq: Assigned<number>
  run_seq: number
  kind: 'message' | 'wait'
  /** The message itself, or the one that stood for the deadline of the wait. */
  message_id: string
  /** When it was due, Unix milliseconds. */
  due_at: number
  /** JSON: of a message its `DeliveryColumns`, of a wait its `event_id` and `wait`. */
  data: string
}

/**
 * A failed attempt of a delivery that succeeded later; a bounded number for each run, with the beginnings of bodies.
 */
export interface RunAttemptsTable {
  run_seq: number
  /** The message, which is gone; an element of the run's list names it. */
  message_id: string
  /** 0 for the first attempt. */
  retried: number
  started_at: number
  /** 0 when there was no answer. */
  status: number
  /** JSON object of header name to array of values. */
  headers: string
  body: Uint8Array | null
  error: string | null
}

/** Tables of the workflow room. */
export interface RunTables {
  runs: RunsTable
  steps: StepsTable
  run_waits: RunWaitsTable
  run_events: RunEventsTable
  run_webhooks: RunWebhooksTable
  run_remains: RunRemainsTable
  run_attempts: RunAttemptsTable
}
