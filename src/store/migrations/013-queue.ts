import type { Migration } from './migration.js'

/** Index of an account's messages by due time. */
export const queueOfMany: Migration = {
  number: 13,
  name: 'queue of many accounts',
  breaking: false,
  statements: () => [
    "CREATE INDEX messages_due_by_account ON messages (account_id, next_at, seq) WHERE state = 'pending'",
  ],
}
