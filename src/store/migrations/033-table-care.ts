import type { Migration } from './migration.js'

const TABLES = ['messages', 'runs', 'steps', 'message_attempts']

/**
 * PostgreSQL keeps old versions of changed rows until it vacuums the table. By default it does that when a fifth of the
 * table has changed, and slowly: with millions of finished messages, that is rarely. So it does so after one hundredth,
 * and without pauses. A run is changed once or twice before it ends, in columns without an index: with space for the new
 * version on the same page, the indexes are not written. A message ends with its first change, and every change of its
 * state changes its indexes.
 */
export const tableCare: Migration = {
  number: 33,
  name: 'vacuum often',
  breaking: false,
  statements: (t) => [...TABLES.flatMap((table) => t.storage(table, OFTEN)), ...t.storage('runs', 'fillfactor = 85')],
}

const OFTEN = [
  'autovacuum_vacuum_scale_factor = 0.01',
  'autovacuum_vacuum_threshold = 1000',
  'autovacuum_analyze_scale_factor = 0.02',
  'autovacuum_vacuum_cost_delay = 0',
  'autovacuum_vacuum_insert_scale_factor = 0.05',
].join(', ')
