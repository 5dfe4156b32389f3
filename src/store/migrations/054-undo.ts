import type { Migration } from './migration.js'

/**
 * What a cancel deletes, to bring its runs back. The deliveries of thousands of runs are one row: a row for each would double
 * the cost of a bulk cancel.
 */
export const undo: Migration = {
  number: 54,
  name: 'undo',
  breaking: false,
  statements: (t) => [
    `CREATE TABLE cancelled_deliveries (
      seq ${t.serial},
      account_id ${t.text} NOT NULL,
      cancelled_by ${t.integer} NOT NULL,
      first_run ${t.integer} NOT NULL,
      last_run ${t.integer} NOT NULL,
      cancelled_at ${t.integer} NOT NULL,
      deliveries ${t.text} NOT NULL
    )`,
    'CREATE INDEX cancelled_deliveries_by_run ON cancelled_deliveries (cancelled_by, first_run)',
    `CREATE TABLE run_returns (
      seq ${t.serial},
      run_seq ${t.integer} NOT NULL,
      cancelled_at ${t.integer} NOT NULL,
      returned_at ${t.integer} NOT NULL,
      returned_by ${t.integer} NOT NULL
    )`,
    'CREATE INDEX run_returns_by_run ON run_returns (run_seq)',
  ],
}
