import { join } from 'node:path'
import Database from 'better-sqlite3'
import { newId } from '../../src/base/index.js'
import { FILE } from './bulk-data.js'

/** Values that a known number of rows has, whatever the size of the store. */
export const NEEDLES = {
  /** In the text of one old error each of a run and a message, and of one audit entry. */
  rare: 'zanzibar',
  /** A label of one old run and one old message. */
  label: 'needle',
  /** In no row. */
  absent: 'nowhere-to-be-found',
} as const

/** The creation times of rows are spread over this time, which is shorter than the retention. */
const SPAN_MS = 2 * 86_400_000
/** Rows that one transaction inserts. */
const CHUNK = 100_000

interface Model {
  readonly table: string
  readonly where: string
  /** SQL of the columns that differ from the model; `i` counts from 1 to `n`, `made` is the time of the row. */
  readonly changed: Readonly<Record<string, string>>
}

const LABEL = `CASE WHEN i = 1000 THEN '|${NEEDLES.label}|' ELSE '|team-' || (i % 100) || '|batch|' END`
const PLACE = {
  url: `'https://host-' || (i % 40) || '.test/jobs/' || (i % 1000)`,
  host: `'host-' || (i % 40) || '.test'`,
  path: `'/jobs/' || (i % 1000)`,
  labels: LABEL,
  flow_key: `CASE WHEN i % 10 = 3 THEN 'key-' || (i % 200) END`,
  caller_ip: `'10.0.0.' || (i % 200)`,
}
/** Of ten rows, seven succeeded, one failed, one was cancelled and one is open. */
const byState = (succeeded: string, failed: string, cancelled: string, open: string): string =>
  `CASE i % 10 WHEN 0 THEN ${failed} WHEN 1 THEN ${cancelled} WHEN 2 THEN ${open} ELSE ${succeeded} END`
const ERROR = `CASE WHEN i = 1000 THEN 'the ${NEEDLES.rare} is closed' ELSE 'no answer within 30 s' END`
const RUN_FAILURE = `json_object('messageId', 'msg_x', 'reason', 'failed', 'status', 500, 'headers', json('{}'), 'body', '',
  'retried', 3, 'maxRetries', 3, 'time', made, 'text', ${ERROR})`

const RUNS: Model = {
  table: 'runs',
  where: 'seq = (SELECT min(seq) FROM runs)',
  changed: {
    ...PLACE,
    seq: 'i',
    run_id: "printf('wfr_order-%09d', i)",
    state: byState("'RUN_SUCCESS'", "'RUN_FAILED'", "'RUN_CANCELED'", "'RUN_STARTED'"),
    created_at: 'made',
    finished_at: byState('made + 5000', 'made + 9000', 'made + 7000', 'NULL'),
    response: byState(`'{"ok":true}'`, 'NULL', 'NULL', 'NULL'),
    response_crc: 'NULL',
    failure: byState('NULL', RUN_FAILURE, 'NULL', 'NULL'),
    failure_status: byState('NULL', '500', 'NULL', 'NULL'),
    dlq_id: byState('NULL', "(made + 9000) || '-' || i", 'NULL', 'NULL'),
    died_at: byState('NULL', 'made + 9000', 'NULL', 'NULL'),
  },
}
const STEPS: Model = {
  table: 'steps',
  where: 'run_seq = (SELECT min(run_seq) FROM steps)',
  changed: { run_seq: 'i', message_id: "new_id('msg_', made)", created_at: 'made' },
}
/** The deliveries of the runs that are open, due tomorrow and later. */
const DELIVERIES: Model = {
  table: 'messages',
  where: 'seq = (SELECT min(seq) FROM messages WHERE group_key IS NOT NULL)',
  changed: {
    ...PLACE,
    seq: 'i + :more',
    group_key: 'CASE WHEN i % 10 = 2 THEN i END',
    message_id: "new_id('msg_', made)",
    next_at: 'next_at + i',
    created_at: 'made',
  },
}
const MESSAGES: Model = {
  table: 'messages',
  where: 'seq = (SELECT min(seq) FROM messages WHERE group_key IS NULL)',
  changed: {
    ...PLACE,
    seq: 'i + :more',
    message_id: "new_id('msg_', made)",
    state: byState("'delivered'", "'failed'", "'canceled'", "'pending'"),
    next_at: 'CASE WHEN i % 10 = 2 THEN next_at + i ELSE made END',
    created_at: 'made',
    started_at: byState('made + 10', 'made + 8000', 'NULL', 'NULL'),
    finished_at: byState('made + 50', 'made + 9000', 'made + 7000', 'NULL'),
    response_status: byState('200', '0', 'NULL', 'NULL'),
    response_headers: byState("'{}'", 'NULL', 'NULL', 'NULL'),
    error: byState('NULL', ERROR, 'NULL', 'NULL'),
    dlq_id: byState('NULL', "(made + 9000) || '-' || (i + :more)", 'NULL', 'NULL'),
    queue: "CASE WHEN i % 50 = 7 THEN 'orders' END",
    topic: "CASE WHEN i % 50 = 8 THEN 'everyone' END",
  },
}
const AUDIT: Model = {
  table: 'audit_log',
  where: 'seq = (SELECT min(seq) FROM audit_log)',
  changed: {
    seq: 'i + :more',
    log_id: "new_id('log_', made)",
    action: "CASE i % 20 WHEN 0 THEN 'Cancel Messages' ELSE 'Change Queue' END",
    entity: "'queue-' || (i % 500)",
    details: `CASE WHEN i = 1000 THEN '{"reason":"${NEEDLES.rare}"}' ELSE '{}' END`,
    at: 'made',
  },
}

const WAIT = JSON.stringify({
  step: { stepId: 1, stepName: 'paid', stepType: 'Wait', concurrent: 1 },
  url: 'https://work.test/jobs',
  timeoutUrl: 'https://work.test/jobs',
  headers: {},
})

/**
 * Multiplies the first run, message and audit entry of a stopped server's store until there are `count` of each, one in ten of
 * them open, one failed, one cancelled. Open ones are due tomorrow and later.
 */
export function fillStore(dataDir: string, count: number): void {
  const db = new Database(join(dataDir, FILE))
  for (const pragma of ['journal_mode = WAL', 'synchronous = OFF', 'cache_size = -262144']) db.pragma(pragma)
  db.function('new_id', { deterministic: false }, (prefix, at) => newId(String(prefix), Number(at)))
  const from = Date.now() - SPAN_MS
  const multiply = ({ table, where, changed }: Model, only = '1') => {
    db.exec(`CREATE TEMP TABLE model AS SELECT * FROM ${table} WHERE ${where}; DELETE FROM ${table} WHERE ${where}`)
    const columns = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name)
    const { more } = db.prepare(`SELECT coalesce(max(rowid), 0) AS more FROM ${table}`).get() as { more: number }
    const values = columns.map((name) => changed[name] ?? name).map((value) => value.replaceAll(':more', String(more)))
    const numbers = 'WITH RECURSIVE n (i) AS (SELECT CAST(? AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i < ?)'
    const insert = db.prepare(`INSERT INTO ${table} (${columns.join(', ')}) ${numbers}
      SELECT ${values.join(', ')} FROM (SELECT i, ${from} + i * ${SPAN_MS} / ${count} AS made FROM n), model WHERE ${only}`)
    for (let at = 1; at <= count; at += CHUNK) insert.run(at, Math.min(count, at + CHUNK - 1))
    db.exec('DROP TABLE model')
  }
  multiply(RUNS)
  multiply(STEPS)
  multiply(DELIVERIES, 'i % 10 = 2')
  multiply(MESSAGES)
  multiply(AUDIT)
  db.exec(`INSERT INTO run_waits (account_id, run_seq, event_id, message_id, wait, deadline, created_at)
    SELECT account_id, group_key, 'event-' || (group_key / 100 % 1000), message_id, '${WAIT}', next_at, created_at
    FROM messages WHERE group_key % 20 = 2`)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
}
