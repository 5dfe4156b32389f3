import type { Migration } from './migration.js'

/**
 * On PostgreSQL, a change of a column that an index mentions writes a new entry into every index of the table. So no
 * index of `runs` mentions a column that changes when a run is cancelled or succeeds: dead letters have a separate time, and
 * triggers keep the unfinished runs in a narrow table. With space for the new version of each run on its page, such an end
 * then writes to no index. The statement of a bulk cancel deletes the rows of its runs itself: a trigger for each of a
 * million runs would cost more than everything else.
 *
 * SQLite changes only those entries of an index that differ, so there the table is a view, with all columns of a run.
 */
export const openRuns: Migration = {
  number: 44,
  name: 'open runs',
  breaking: true,
  statements: (t) => [
    `ALTER TABLE runs ADD COLUMN died_at ${t.integer}`,
    'UPDATE runs SET died_at = finished_at WHERE dlq_id IS NOT NULL',
    'DROP INDEX runs_dead_by_end',
    'CREATE INDEX runs_dead_by_death ON runs (account_id, died_at, seq) WHERE dlq_id IS NOT NULL',
    ...t.either({ sqlite: [AS_VIEW], postgres: AS_TABLE }),
    ...t.storage('runs', 'fillfactor = 45'),
  ],
}

const AS_VIEW = "CREATE VIEW open_runs AS SELECT * FROM runs WHERE state = 'RUN_STARTED'"

const AS_TABLE = [
  'CREATE TABLE open_runs (account_id TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (account_id, seq))',
  "INSERT INTO open_runs SELECT account_id, seq FROM runs WHERE state = 'RUN_STARTED' ORDER BY account_id, seq",
  'DROP INDEX runs_unfinished',
  `ALTER TABLE open_runs SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 0.05)`,
  `CREATE FUNCTION open_runs_add() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO open_runs SELECT account_id, seq FROM added WHERE state = 'RUN_STARTED';
    RETURN NULL;
  END $$`,
  `CREATE FUNCTION open_runs_remove() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM open_runs WHERE account_id = OLD.account_id AND seq = OLD.seq;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER runs_added AFTER INSERT ON runs REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION open_runs_add()`,
  `CREATE TRIGGER runs_ended AFTER UPDATE ON runs FOR EACH ROW
    WHEN (OLD.state = 'RUN_STARTED' AND NEW.state <> 'RUN_STARTED' AND NEW.canceled_by IS NULL)
    EXECUTE FUNCTION open_runs_remove()`,
  `CREATE TRIGGER runs_deleted AFTER DELETE ON runs FOR EACH ROW WHEN (OLD.state = 'RUN_STARTED')
    EXECUTE FUNCTION open_runs_remove()`,
]
