import type { Migration } from './migration.js'

/** Certificate authority for the client certificates of a database. */
export const clientAuthority: Migration = {
  number: 16,
  name: 'client_authority',
  // An older Homeport would let clients in without a certificate.
  breaking: true,
  statements: (t) => [`ALTER TABLE databases ADD COLUMN client_authority ${t.text}`],
}
