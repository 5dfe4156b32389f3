import type { Migration } from './migration.js'

/** Recent activity of accounts, for the charts of Home. */
export const activity: Migration = {
  number: 82,
  name: 'activity',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE activity (
      account_id ${t.text} NOT NULL,
      start ${t.integer} NOT NULL,
      writer ${t.text} NOT NULL,
      counts ${t.text} NOT NULL,
      PRIMARY KEY (account_id, start, writer)
    )`,
    'CREATE INDEX activity_by_age ON activity (start, account_id)',
  ],
}
