import type { Migration } from './migration.js'

/**
 * The region that a life of a node serves; NULL: all. A table of its own, as for generations: nodes of the version before
 * read whole rows of `nodes`.
 */
export const nodeRegions: Migration = {
  number: 53,
  name: 'node_regions',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE node_regions (
      incarnation ${t.integer} PRIMARY KEY,
      region ${t.text}
    )`,
  ],
}
