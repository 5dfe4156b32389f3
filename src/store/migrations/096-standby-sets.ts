import type { Migration } from './migration.js'

/**
 * Several standbys of a database; see `databases/standbys/`. The slot is part of the key, which SQLite cannot change, so the
 * table is recreated. The rename comes first, so that no other node writes a row that the copy would miss. Older nodes can
 * still write: a row without a slot gets slot 1. The first second standby makes this a breaking migration for them
 * (`databases/transactions/standby-sets.ts`).
 */
export const standbySets: Migration = {
  number: 96,
  name: 'standby_sets',
  breaking: false,
  statements: (t) => [
    'ALTER TABLE database_standbys RENAME TO database_standby_rows',
    `CREATE TABLE database_standbys (
      database_id ${t.text} NOT NULL,
      slot ${t.integer} NOT NULL DEFAULT 1 CHECK (slot BETWEEN 1 AND 3),
      node ${t.text} NOT NULL,
      placement ${t.text} NOT NULL DEFAULT 'named' CHECK (placement IN ('named', 'auto')),
      mode ${t.text} NOT NULL DEFAULT 'async' CHECK (mode IN ('async', 'replicated')),
      state ${t.text} NOT NULL CHECK (state IN ('asked', 'copying', 'following', 'behind')),
      epoch ${t.integer} NOT NULL,
      complete_until ${t.integer},
      home_offset ${t.integer},
      standby_offset ${t.integer},
      problem ${t.text},
      asked_at ${t.integer} NOT NULL,
      stand_life ${t.integer},
      stand_replid ${t.text},
      stand_offset ${t.integer},
      PRIMARY KEY (database_id, slot)
    )`,
    `INSERT INTO database_standbys (database_id, node, placement, mode, state, epoch, complete_until, home_offset, standby_offset, problem, asked_at)
      SELECT database_id, node, placement, mode, state, epoch, complete_until, home_offset, standby_offset, problem, asked_at
      FROM database_standby_rows`,
    'DROP TABLE database_standby_rows',
  ],
}
