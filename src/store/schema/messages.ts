import type { Assigned } from './assigned.js'

/**
 * State of a message.
 * - `held`: waits for its turn in its queue; it has no due time yet and the dispatcher does not see it;
 * - `pending`: waits for `next_at` or is being sent. The store does not distinguish these, so starting an attempt costs no
 *   write, and after a crash the attempt is repeated;
 * - `delivered`, `failed`: finished for good;
 * - `canceled`: finished, until the cancel is undone.
 */
export type MessageState = 'held' | 'pending' | 'delivered' | 'failed' | 'canceled'

/** A message: what is sent where, when next, and with which outcome. */
export interface MessagesTable {
  seq: Assigned<number>
  /** `msg_…`, made by `newId`, so ids sort by creation time. */
  message_id: string
  account_id: string
  /**
   * The kind that builds its requests and settles its outcomes: `http` for plain messages, otherwise the name that
   * another module registered.
   */
  kind: string
  /** An integer that groups messages of one creator, to find and delete them together; NULL for none. */
  group_key: number | null
  state: MessageState
  url: string
  method: string
  /** JSON object of Title-Case header name to array of values, as sent to the destination. */
  headers: string
  body: Uint8Array | null
  /** Checksum of the body; see `checksum.ts`. */
  body_crc: number | null
  /** JSON of `MessageConfig` (module queue). */
  config: string
  /** Maximum number of retries. */
  max_retries: number
  /** Failed attempts so far that were or will be retried. */
  retried: number
  /** When the next attempt is due. */
  next_at: number
  created_at: number
  finished_at: number | null
  /** Start of the last attempt of a finished message; NULL if there was none. */
  started_at: number | null
  /** Status of the response to the last attempt of a finished message; 0 for no response. */
  response_status: number | null
  /** JSON object of header name to array of values. */
  response_headers: string | null
  /** The first bytes of the response's body. */
  response_body: Uint8Array | null
  /** Checksum of `response_body`. */
  response_crc: number | null
  /** Why the last attempt got no response, in words. */
  error: string | null
  /** `<finished_at>-<seq>` while the message is in the dead letter queue. */
  dlq_id: string | null
  /** All labels between bars, `|a|b|`; empty for none. */
  labels: string
  flow_key: string | null
  caller_ip: string | null
  /** Host (with port, if given) and path of `url`, for filters and fairness. */
  host: string
  path: string
  /** The URL group that it was published to, and the name of its endpoint, if any. */
  topic: string | null
  endpoint: string | null
  /** The queue that it waits in; NULL for messages without a queue. */
  queue: string | null
  /** For a callback of a queue's message: `seq` of that message, whose turn lasts until the callback has ended. */
  slot_seq: number | null
  /** The schedule that published it. */
  schedule_id: string | null
  /** Which node of a cluster sends it: the one that owns this partition. */
  partition: number
}

/** A failed attempt that was retried. The last attempt is in the message's own row. */
export interface MessageAttemptsTable {
  message_seq: number
  /** 0 for the first attempt. */
  retried: number
  started_at: number
  finished_at: number
  /** HTTP status; 0 for no response. */
  status: number
  /** JSON object of header name to array of values. */
  headers: string
  body: Uint8Array | null
  error: string | null
  /** When the next attempt was due. */
  next_at: number
  /** When this attempt was due, and how long it waited for its flow-control key. Set only for deliveries of runs. */
  due_at: number | null
  held_ms: number | null
}

/** The message of a deduplication key, and when the key expires. */
export interface MessageKeysTable {
  account_id: string
  dedup_key: string
  message_id: string
  expires_at: number
}

/** The message that holds a debounce or singleton key of an account. */
export interface RuleKeysTable {
  account_id: string
  rule: 'debounce' | 'singleton'
  rule_key: string
  /** It may have ended; then the key is free. A message that is being sent no longer holds its debounce key. */
  message_id: string
  /** When the first message of the burst was published; of a singleton key, when this message was. Unix milliseconds. */
  since: number
}

/** Tables of messages, of the module queue. */
export interface MessageTables {
  messages: MessagesTable
  message_attempts: MessageAttemptsTable
  message_keys: MessageKeysTable
  rule_keys: RuleKeysTable
}
