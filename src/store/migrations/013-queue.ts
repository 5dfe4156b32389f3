import type { Migration } from './migration.js'

/** The messages of one account in the order of falling due, however many others there are. */
export const queueOfMany: Migration = {
  number: 13,
  name: 'queue of many accounts',
  breaking: false,
  statements: () => [
    "CREATE INDEX messages_due_by_account ON messages (account_id, next_at, seq) WHERE state = 'pending'",
  ],
}
