import type { Migration } from './migration.js'

/**
 * Where backups are besides the disk of their node, and databases that were taken over from a node that is gone. Tables of
 * their own: nodes of the version before read whole rows of `backups` and `databases`.
 */
export const backupObjects: Migration = {
  number: 51,
  name: 'backup_objects',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE backup_objects (
      backup_id ${t.text} PRIMARY KEY,
      database_id ${t.text} NOT NULL,
      state ${t.text} NOT NULL,
      node ${t.text} NOT NULL,
      object ${t.text} NOT NULL,
      size_bytes ${t.integer} NOT NULL,
      changed_at ${t.integer} NOT NULL,
      failure ${t.text}
    )`,
    `CREATE INDEX backup_objects_deleting ON backup_objects (changed_at) WHERE state = 'deleting'`,
    `CREATE INDEX backup_objects_of_database ON backup_objects (database_id)`,
    `CREATE TABLE taken_homes (
      database_id ${t.text} NOT NULL,
      from_node ${t.text} NOT NULL,
      to_node ${t.text} NOT NULL,
      backup_id ${t.text} NOT NULL,
      taken_at ${t.integer} NOT NULL,
      PRIMARY KEY (database_id, from_node)
    )`,
  ],
}
