import type { Migration } from './migration.js'

/**
 * Which nodes may run side by side during an upgrade. A table of its own: nodes of the version before read whole rows of
 * `nodes`, so a new column there would make their prepared statements fail.
 */
export const generations: Migration = {
  number: 47,
  name: 'generations',
  breaking: false,
  statements: (t) => [
    `ALTER TABLE schema_migrations ADD COLUMN works_from ${t.integer}`,
    `CREATE TABLE node_generations (
      incarnation ${t.integer} PRIMARY KEY,
      generation ${t.integer} NOT NULL,
      schema_from ${t.integer} NOT NULL,
      schema_to ${t.integer} NOT NULL
    )`,
  ],
}
