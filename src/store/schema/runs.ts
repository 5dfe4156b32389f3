import type { Assigned } from './assigned.js'

/** State of a run. Transitions lead from `RUN_STARTED` to one of the other three, which are final, except that a cancel can be undone. */
export type RunState = 'RUN_STARTED' | 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED'

/**
 * Whether the program at the run's URL has been contacted: a run that was triggered without an SDK is `unknown` until its
 * program has answered for the first time; every other run is `known`.
 */
export type RunContact = 'unknown' | 'known'

/** State of the failure callback of a failed run. */
export type FailureState = 'CALLBACK_INPROGRESS' | 'CALLBACK_SUCCESS' | 'CALLBACK_FAIL' | 'CALLBACK_CANCELED'

/** Kind of an element of a run's list. The SDK replays only `step` elements. */
export type ElementKind = 'step' | 'toCallback' | 'fromCallback' | 'failureCall'

/**
 * A run: one execution of a workflow. Rows are kept small, because bulk actions read and change many; so the trigger's
 * configuration is stored with the first element of the list.
 */
export interface RunsTable {
  /** In the order of creation; messages refer to it by `group_key`. */
  seq: Assigned<number>
  run_id: string
  account_id: string
  /** The endpoint, as triggered. */
  url: string
  /** Host (with port) and path of `url`, for filters. */
  host: string
  path: string
  state: RunState
  contact: RunContact
  created_at: number
  /** Set when the state is final. */
  finished_at: number | null
  /** All labels between bars, `|a|b|`; empty for none. */
  labels: string
  flow_key: string | null
  caller_ip: string
  /** The result of a successful run, text. */
  response: string | null
  /** Checksum of `response`; see `checksum.ts`. */
  response_crc: number | null
  /** JSON of the failure; set with `RUN_FAILED`. */
  failure: string | null
  /** Status of the response that failed the run; 0 for no response. */
  failure_status: number | null
  /** NULL unless the run failed and has a failure callback. */
  failure_state: FailureState | null
  /** `<finished_at>-<message seq>` while a failed run is in the dead letter queue. */
  dlq_id: string | null
  /** When it became a dead letter, the order of dead letters; NULL if it never was one. */
  died_at: number | null
  /** `bulk_actions.seq` of the action that cancelled it; NULL if no bulk action did. */
  canceled_by: number | null
  /** For a failed run that was resumed: `runs.seq` of the run that continues in its place. */
  resumed_as: number | null
  /** For a run that was cancelled by a trigger with its debounce or singleton key: `runs.seq` of the run that started. */
  replaced_by: number | null
  /** When it was paused; NULL unless it is paused. A cancelled run keeps it for its undo; other ended runs ignore it. */
  paused_at: number | null
  /** JSON of `RunPause` (`workflow/transactions/runs-pause.ts`). */
  pause: string | null
  /** The run that invoked this one, and JSON of how to notify it of the end. */
  parent_seq: number | null
  parent: string | null
}

/**
 * The runs in the state `RUN_STARTED`. The database keeps these rows when runs are inserted, deleted, or end on their own;
 * the statement of a bulk cancel deletes those of the runs that it ends. On SQLite it is a view of these rows of `runs`.
 */
export interface OpenRunsTable {
  readonly account_id: string
  /** `runs.seq` */
  readonly seq: number
}

/** The append-only list of a run. Position 0 is the initial payload. */
export interface StepsTable {
  run_seq: number
  position: number
  /** The message that delivers this element. */
  message_id: string
  kind: ElementKind
  /** Bytes as received; parsed only to show them. */
  body: Uint8Array
  /** Checksum of the body. */
  body_crc: number | null
  /** JSON of `ElementMeta`: the trigger's settings at position 0, otherwise differences from them. */
  meta: string | null
  created_at: number
  /** JSON of `DeliveryTimes` (`workflow/runs/delivery-times.ts`), of the delivery whose answer this element is. */
  timing: string | null
}

/** A run that waits for an event. Its timeout is a pending message. */
export interface RunWaitsTable {
  seq: Assigned<number>
  account_id: string
  run_seq: number
  event_id: string
  /** The message that fires at the deadline. */
  message_id: string
  /** JSON of the step to append, with its destination and headers. */
  wait: string
  /** Unix milliseconds. */
  deadline: number
  created_at: number
}

/** An event that was sent to a run before the run waited for it. */
export interface RunEventsTable {
  seq: Assigned<number>
  run_seq: number
  event_id: string
  /** The `out` of the waiting step, decoded. */
  data: Uint8Array
  /** Checksum of the data. */
  data_crc: number | null
  created_at: number
}

/** What a notification did: runs continue, a run keeps the event until it waits for it, or nobody waited. */
export type NotifiedOutcome = 'woke' | 'kept' | 'nobody'

/** An event that was received. */
export interface NotifiedEventsTable {
  seq: Assigned<number>
  account_id: string
  event_id: string
  source: 'token' | 'webhook'
  outcome: NotifiedOutcome
  /** Runs that continue. */
  woken: number
  /** JSON list of `runs.seq`: the first runs that continue, or the one that keeps the event. */
  runs: string
  /** Size of the data. */
  bytes: number
  /** Unix milliseconds. */
  at: number
}

/** A webhook of a run. Its event id is a random text of the client, known only to those who know the URL. */
export interface RunWebhooksTable {
  run_seq: number
  event_id: string
}

/**
 * A pending delivery or wait of a run at the time when it failed, including the failed message. Kept while the run can be
 * resumed.
 */
export interface RunRemainsTable {
  seq: Assigned<number>
  run_seq: number
  kind: 'message' | 'wait'
  /** The message, or the one for the deadline of the wait. */
  message_id: string
  /** When it was due, Unix milliseconds. */
  due_at: number
  /** JSON: `DeliveryColumns` of a message, or `event_id` and `wait` of a wait. */
  data: string
}

/**
 * A failed attempt of a delivery that succeeded later. The number per run is limited, and bodies are shortened.
 */
export interface RunAttemptsTable {
  run_seq: number
  /** The deleted message; an element of the run's list refers to it. */
  message_id: string
  /** 0 for the first attempt. */
  retried: number
  started_at: number
  /** HTTP status; 0 for no response. */
  status: number
  /** JSON object of header name to array of values. */
  headers: string
  body: Uint8Array | null
  error: string | null
  /** NULL if unknown: when it was due, how long it waited for its flow-control key, and when it ended. */
  due_at: number | null
  held_ms: number | null
  finished_at: number | null
}

/** The pending deliveries that one cancel deleted, of all its runs from `first_run` to `last_run`. An undo restores them. */
export interface CancelledDeliveriesTable {
  seq: Assigned<number>
  account_id: string
  /** `bulk_actions.seq`; 0 for the cancel of a single run. */
  cancelled_by: number
  first_run: number
  last_run: number
  /** `runs.finished_at` of the runs. */
  cancelled_at: number
  /** JSON list of the entries in `workflow/transactions/runs-kept.ts`. */
  deliveries: string
}

/** A cancelled run that was brought back. */
export interface RunReturnsTable {
  seq: Assigned<number>
  run_seq: number
  cancelled_at: number
  returned_at: number
  /** `bulk_actions.seq` */
  returned_by: number
}

/** The run that holds a debounce or singleton key of an account. */
export interface RunRuleKeysTable {
  account_id: string
  rule: 'debounce' | 'singleton'
  rule_key: string
  /** It may have ended; then the key is free. A run that has started no longer holds its debounce key. 0: none yet. */
  run_seq: number
  /** When the first trigger of the burst came; of a singleton key, when this run was triggered. Unix milliseconds. */
  since: number
}

/** Tables of the module workflow. */
export interface RunTables {
  runs: RunsTable
  run_rule_keys: RunRuleKeysTable
  open_runs: OpenRunsTable
  steps: StepsTable
  run_waits: RunWaitsTable
  run_events: RunEventsTable
  notified_events: NotifiedEventsTable
  run_webhooks: RunWebhooksTable
  run_remains: RunRemainsTable
  run_attempts: RunAttemptsTable
  cancelled_deliveries: CancelledDeliveriesTable
  run_returns: RunReturnsTable
}
