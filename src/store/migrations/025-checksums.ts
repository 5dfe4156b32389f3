import type { Migration } from './migration.js'

/** Checksums of contents from callers; NULL for contents stored before this migration. */
export const checksums: Migration = {
  number: 25,
  name: 'checksums',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE messages ADD COLUMN body_crc ${t.integer}`,
    `ALTER TABLE messages ADD COLUMN response_crc ${t.integer}`,
    `ALTER TABLE steps ADD COLUMN body_crc ${t.integer}`,
    `ALTER TABLE run_events ADD COLUMN data_crc ${t.integer}`,
    `ALTER TABLE runs ADD COLUMN response_crc ${t.integer}`,
    `ALTER TABLE schedules ADD COLUMN body_crc ${t.integer}`,
  ],
}
