import type { Migration } from './migration.js'

/** Settings of a database's engine that its clients have changed. */
export const engineSettings: Migration = {
  number: 28,
  name: 'engine_settings',
  breaking: false,
  statements: (t) => [`ALTER TABLE databases ADD COLUMN engine_settings ${t.text} NOT NULL DEFAULT '{}'`],
}
