import type { Assigned } from './assigned.js'

/**
 * What has become of a message.
 * - `held`: waits for its turn in its queue; it has no due time yet and the delivery engine does not see it;
 * - `pending`: waits for `next_at` or is being sent right now (the store does not tell these apart, so that an attempt
 *   costs no write at its start and is simply made again after a crash);
 * - `delivered`, `failed`, `canceled`: finished forever.
 */
export type MessageState = 'held' | 'pending' | 'delivered' | 'failed' | 'canceled'

/** A message: what is sent where, when next, and how it ended. */
export interface MessagesTable {
  seq: Assigned<number>
  /** `msg_…`, made with `newId`, so that the ids of an account sort by the time of creation. */
  message_id: string
  account_id: string
  /**
   * The kind that builds its requests and settles its outcomes: `http` for plain messages, else the name that another
   * room registered.
   */
  kind: string
  /** An integer by which the creator finds and drops its messages together; NULL for none. */
  group_key: number | null
  state: MessageState
  url: string
  method: string
  /** JSON object of Title-Case header name to array of values, as sent to the destination. */
  headers: string
  body: Uint8Array | null
  /** Of the body; see `checksum.ts`. */
  body_crc: number | null
  /** JSON of `MessageConfig` (queue room). */
  config: string
  /** How many attempts may follow the first one. */
  max_retries: number
  /** How many attempts have failed so far and were or will be followed by another. */
  retried: number
  /** When the next attempt is due. */
  next_at: number
  created_at: number
  finished_at: number | null
  /** When the last attempt of a finished message began; NULL when none was made. */
  started_at: number | null
  /** The answer to the last attempt of a finished message; 0 when there was none. */
  response_status: number | null
  /** JSON object of header name to array of values. */
  response_headers: string | null
  /** The first bytes of the answer's body. */
  response_body: Uint8Array | null
  /** Of `response_body`. */
  response_crc: number | null
  /** Why the last attempt got no answer, in words. */
  error: string | null
  /** `<finished_at>-<seq>` while the message is in the dead letter queue. */
  dlq_id: string | null
  /** Every label between bars, `|a|b|`; empty for none. */
  labels: string
  flow_key: string | null
  caller_ip: string | null
  /** Host (with port, if one is written) and path of `url`, for filters and fairness. */
  host: string
  path: string
  /** The URL group that it was published to, and the name of the endpoint there, if that has one. */
  topic: string | null
  endpoint: string | null
  /** The queue in which it waits for its turn; NULL for messages that wait for nothing but their time. */
  queue: string | null
  /** A callback of a message of a queue: the number of that message, whose turn lasts until the callback has ended. */
  slot_seq: number | null
  /** The schedule that made it. */
  schedule_id: string | null
}

/** A failed attempt that was followed by another one. The last attempt of a message stands in its own row. */
export interface MessageAttemptsTable {
  message_seq: number
  /** 0 for the first attempt. */
  retried: number
  started_at: number
  finished_at: number
  /** 0 when there was no answer. */
  status: number
  /** JSON object of header name to array of values. */
  headers: string
  body: Uint8Array | null
  error: string | null
  /** When the attempt after this one was due. */
  next_at: number
}

/** Which message a deduplication key stands for, until when. */
export interface MessageKeysTable {
  account_id: string
  dedup_key: string
  message_id: string
  expires_at: number
}

/** Tables of the queue room. */
export interface MessageTables {
  messages: MessagesTable
  message_attempts: MessageAttemptsTable
  message_keys: MessageKeysTable
}
