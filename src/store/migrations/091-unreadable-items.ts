import type { Migration } from './migration.js'

/** How many items a condition of a bulk action could not be tested on. */
export const unreadableItems: Migration = {
  number: 91,
  name: 'unreadable_items',
  breaking: false,
  statements: (t) => [`ALTER TABLE bulk_actions ADD COLUMN unreadable ${t.integer}`],
}
