import type { Migration } from './migration.js'

/**
 * Homeport reads a page of the waits for an event in the order of their numbers. On SQLite every index ends with the number.
 * On PostgreSQL it did not, so each page read and sorted all waits for the event; now the index has the number too.
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
