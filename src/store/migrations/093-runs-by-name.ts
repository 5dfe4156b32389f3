import type { Migration } from './migration.js'

/**
 * Until PostgreSQL has analyzed a table, it considers all of its indexes equally good, and uses the newest one. For a run by
 * its id, that was the index over all runs of the account, until a minute after the first runs. So the index over ids is
 * recreated, after all others. A store with runs keeps its indexes: its table is analyzed.
 */
export const runsByName: Migration = {
  number: 93,
  name: 'runs_by_name',
  breaking: false,
  statements: (t) => t.either({ sqlite: [], postgres: [NEWEST] }),
}

const NEWEST = `DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM runs) THEN
    ALTER TABLE runs DROP CONSTRAINT runs_account_id_run_id_key, ADD UNIQUE (account_id, run_id);
  END IF;
END $$`
