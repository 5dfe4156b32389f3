import type { Migration } from './migration.js'

/**
 * Which node of a cluster sends a message. The dispatcher of a node filters by partition with index-only scans. A SQLite
 * store has one node, so its index stays as it is.
 */
export const partitions: Migration = {
  number: 40,
  name: 'partitions',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE messages ADD COLUMN partition ${t.integer} NOT NULL DEFAULT 0`,
    ...t.including('partition', 'messages_due', 'messages (next_at, seq)', "state = 'pending'"),
  ],
}
