import type { Migration } from './migration.js'

/**
 * A page of the waits for an event is read in the order of their numbers. On SQLite every index ends with the number; on
 * PostgreSQL this one had to: a page read and sorted all waits for its event.
 */
export const waitsInOrder: Migration = {
  number: 94,
  name: 'waits_in_order',
  breaking: false,
  statements: (t) =>
    t.either({
      sqlite: [],
      postgres: [
        'DROP INDEX run_waits_by_event',
        'CREATE INDEX run_waits_by_event ON run_waits (account_id, event_id, seq)',
      ],
    }),
}
