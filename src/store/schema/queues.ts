/** A queue: its messages take turns in the order in which they came. */
export interface QueuesTable {
  account_id: string
  name: string
  /** How many messages have their turn at once. */
  parallelism: number
  /** 1: no turn begins; those that have begun go on. */
  paused: number
  created_at: number
  updated_at: number
}

/**
 * A turn in a queue: from the moment a message may be delivered until it and its callbacks have ended. The message may
 * have ended long before its turn.
 */
export interface QueueTurnsTable {
  message_seq: number
  account_id: string
  queue: string
}

/** A URL group: what is published to it goes to each of its endpoints. */
export interface UrlGroupsTable {
  account_id: string
  name: string
  /** JSON object of lower-case header name to value: settings of publications that do not say them themselves. */
  headers: string
  /** JSON array of `{ name?, url }`, in the order in which they were added. */
  endpoints: string
  created_at: number
  updated_at: number
}

/** A schedule: publishes the same message again and again. */
export interface SchedulesTable {
  account_id: string
  schedule_id: string
  /** The cron expression as it was sent, time zone included. */
  cron: string
  destination: string
  /** JSON object of lower-case header name to value, as the schedule was created with. */
  headers: string
  body: Uint8Array | null
  /** Of the body; see `checksum.ts`. */
  body_crc: number | null
  queue: string | null
  caller_ip: string | null
  paused: number
  created_at: number
  /** When it fires next; NULL when it never does again. */
  next_at: number | null
  /** When it has fired last. */
  last_at: number | null
  /** JSON array of the ids of the messages of the last fires, newest first. */
  last_messages: string
  /** Why the last fire brought nothing, in words. */
  error: string | null
}

/** A flow-control key: how many deliveries that name it may run side by side and begin in a period. */
export interface FlowKeysTable {
  account_id: string
  flow_key: string
  /** NULL: no limit. */
  parallelism: number | null
  rate: number | null
  period_s: number
  paused: number
  /** 1: messages do not change the limit any more. */
  pinned_parallelism: number
  pinned_rate: number
  updated_at: number
}

/** Tables that lead messages to where they go, and when. */
export interface QueueTables {
  queues: QueuesTable
  queue_turns: QueueTurnsTable
  url_groups: UrlGroupsTable
  schedules: SchedulesTable
  flow_keys: FlowKeysTable
}
