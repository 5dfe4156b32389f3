/** A queue: its messages are delivered in the order in which they were published. */
export interface QueuesTable {
  account_id: string
  name: string
  /** How many messages may be delivered at once. */
  parallelism: number
  /** 1: paused. No turn starts; turns that have started continue. */
  paused: number
  created_at: number
  updated_at: number
}

/**
 * A turn in a queue: lasts from when a message may be delivered until the message and its callbacks have ended. The message
 * may end long before its turn does.
 */
export interface QueueTurnsTable {
  message_seq: number
  account_id: string
  queue: string
}

/** A URL group: a message published to it goes to all its endpoints. */
export interface UrlGroupsTable {
  account_id: string
  name: string
  /** JSON object of lower-case header name to value: default settings of its messages. */
  headers: string
  /** JSON array of `{ name?, url }`, in the order in which they were added. */
  endpoints: string
  created_at: number
  updated_at: number
}

/** A schedule: publishes the same message periodically. */
export interface SchedulesTable {
  account_id: string
  schedule_id: string
  /** The cron expression as requested, including the time zone. */
  cron: string
  destination: string
  /** JSON object of lower-case header name to value, from the creating request. */
  headers: string
  body: Uint8Array | null
  /** Checksum of the body; see `checksum.ts`. */
  body_crc: number | null
  queue: string | null
  caller_ip: string | null
  paused: number
  created_at: number
  /** When it fires next; NULL for never. */
  next_at: number | null
  /** When it fired last. */
  last_at: number | null
  /** JSON array of the ids of the last published messages, newest first. */
  last_messages: string
  /** Why the last fire published nothing, in words. */
  error: string | null
}

/** A flow-control key: limits the parallelism and the rate of deliveries that name it. */
export interface FlowKeysTable {
  account_id: string
  flow_key: string
  /** NULL: no limit. */
  parallelism: number | null
  rate: number | null
  period_s: number
  paused: number
  /** 1: messages no longer change the limit. */
  pinned_parallelism: number
  pinned_rate: number
  updated_at: number
}

/** Number of messages that an account published on one day; only for accounts with a limit of messages a day. */
export interface PublishedDaysTable {
  account_id: string
  /** Days since 1970, UTC. */
  day: number
  published: number
}

/** Tables of queues, URL groups, schedules and flow control, of the module queue. */
export interface QueueTables {
  queues: QueuesTable
  queue_turns: QueueTurnsTable
  url_groups: UrlGroupsTable
  schedules: SchedulesTable
  flow_keys: FlowKeysTable
  published_days: PublishedDaysTable
}
