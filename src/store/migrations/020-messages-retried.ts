import type { Migration } from './migration.js'

/** Index of the few messages that are being retried. */
export const messagesRetried: Migration = {
  number: 20,
  name: 'retried messages of groups',
  breaking: false,
  statements: () => [
    "CREATE INDEX messages_retried ON messages (group_key) WHERE group_key IS NOT NULL AND retried > 0 AND state = 'pending'",
  ],
}
