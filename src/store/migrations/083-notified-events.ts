import type { Migration } from './migration.js'

/** The events that were received, and their outcomes. */
export const notifiedEvents: Migration = {
  number: 83,
  name: 'notified_events',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE notified_events (
      seq ${t.serial},
      account_id ${t.text} NOT NULL,
      event_id ${t.text} NOT NULL,
      source ${t.text} NOT NULL CHECK (source IN ('token', 'webhook')),
      outcome ${t.text} NOT NULL CHECK (outcome IN ('woke', 'kept', 'nobody')),
      woken ${t.integer} NOT NULL,
      runs ${t.text} NOT NULL,
      bytes ${t.integer} NOT NULL,
      at ${t.integer} NOT NULL
    )`,
    'CREATE INDEX notified_events_by_account ON notified_events (account_id, seq)',
  ],
}
