import type { Migration } from './migration.js'

/** Selectors of bulk actions that an account has saved under a name. */
export const savedSelectors: Migration = {
  number: 59,
  name: 'saved_selectors',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE bulk_selectors (
      account_id ${t.text} NOT NULL,
      name ${t.text} NOT NULL,
      kind ${t.text} NOT NULL,
      selector ${t.text} NOT NULL,
      saved_by ${t.text} NOT NULL,
      saved_at ${t.integer} NOT NULL,
      PRIMARY KEY (account_id, name)
    )`,
  ],
}
