import type { Migration } from './migration.js'

const PARTITIONS = 64
const partitions = Array.from({ length: PARTITIONS }, (_, partition) => `(${partition}, NULL, 0, NULL)`).join(', ')

/** Which nodes use the store, and which of them does what. A server that is alone writes none of it. */
export const cluster: Migration = {
  number: 38,
  name: 'cluster',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE nodes (
      incarnation ${t.serial},
      name ${t.text} NOT NULL,
      dir ${t.text} NOT NULL,
      advertise ${t.text} NOT NULL,
      version ${t.text} NOT NULL,
      config ${t.text} NOT NULL,
      state ${t.text} NOT NULL CHECK (state IN ('live', 'draining', 'dead', 'left')),
      is_open ${t.integer} NOT NULL CHECK (is_open IN (0, 1)),
      beat ${t.integer} NOT NULL,
      seen ${t.integer} NOT NULL,
      started_at ${t.integer} NOT NULL,
      beat_at ${t.integer} NOT NULL
    )`,
    "CREATE UNIQUE INDEX nodes_by_name ON nodes (name) WHERE state IN ('live', 'draining')",
    `CREATE TABLE partitions (
      partition ${t.integer} PRIMARY KEY,
      owner ${t.integer},
      epoch ${t.integer} NOT NULL,
      notes ${t.text}
    )`,
    `INSERT INTO partitions (partition, owner, epoch, notes) VALUES ${partitions}`,
    `CREATE TABLE leases (
      name ${t.text} PRIMARY KEY,
      owner ${t.integer},
      epoch ${t.integer} NOT NULL
    )`,
    "INSERT INTO leases (name, owner, epoch) VALUES ('leader', NULL, 0), ('announcements', NULL, 0)",
    `CREATE TABLE announcements (
      version ${t.integer} PRIMARY KEY,
      sender ${t.integer} NOT NULL,
      topic ${t.text} NOT NULL,
      payload ${t.text} NOT NULL,
      at ${t.integer} NOT NULL
    )`,
    ...t.storage('nodes', 'fillfactor = 50, autovacuum_vacuum_threshold = 100'),
  ],
}
