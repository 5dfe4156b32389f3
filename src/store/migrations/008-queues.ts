import type { Migration } from './migration.js'

/** Queues, URL groups, schedules and flow-control keys. */
export const queues: Migration = {
  number: 8,
  name: 'queues',
  breaking: true,
  statements: (t) => [
    `CREATE TABLE queues (
      account_id ${t.text} NOT NULL,
      name ${t.text} NOT NULL,
      parallelism ${t.integer} NOT NULL CHECK (parallelism > 0),
      paused ${t.integer} NOT NULL,
      created_at ${t.integer} NOT NULL,
      updated_at ${t.integer} NOT NULL,
      PRIMARY KEY (account_id, name)
    )`,
    `CREATE TABLE queue_turns (
      message_seq ${t.integer} NOT NULL PRIMARY KEY,
      account_id ${t.text} NOT NULL,
      queue ${t.text} NOT NULL
    )`,
    'CREATE INDEX queue_turns_by_queue ON queue_turns (account_id, queue)',
    `CREATE TABLE url_groups (
      account_id ${t.text} NOT NULL,
      name ${t.text} NOT NULL,
      headers ${t.text} NOT NULL,
      endpoints ${t.text} NOT NULL,
      created_at ${t.integer} NOT NULL,
      updated_at ${t.integer} NOT NULL,
      PRIMARY KEY (account_id, name)
    )`,
    `CREATE TABLE schedules (
      account_id ${t.text} NOT NULL,
      schedule_id ${t.text} NOT NULL,
      cron ${t.text} NOT NULL,
      destination ${t.text} NOT NULL,
      headers ${t.text} NOT NULL,
      body ${t.bytes},
      queue ${t.text},
      caller_ip ${t.text},
      paused ${t.integer} NOT NULL,
      created_at ${t.integer} NOT NULL,
      next_at ${t.integer},
      last_at ${t.integer},
      last_messages ${t.text} NOT NULL,
      error ${t.text},
      PRIMARY KEY (account_id, schedule_id)
    )`,
    'CREATE INDEX schedules_due ON schedules (next_at) WHERE paused = 0 AND next_at IS NOT NULL',
    `CREATE TABLE flow_keys (
      account_id ${t.text} NOT NULL,
      flow_key ${t.text} NOT NULL,
      parallelism ${t.integer},
      rate ${t.integer},
      period_s ${t.integer} NOT NULL,
      paused ${t.integer} NOT NULL,
      pinned_parallelism ${t.integer} NOT NULL,
      pinned_rate ${t.integer} NOT NULL,
      updated_at ${t.integer} NOT NULL,
      PRIMARY KEY (account_id, flow_key)
    )`,
  ],
}
