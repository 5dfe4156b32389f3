import pg from 'pg'
import { ACCOUNT, type BareTimes, DECOY_EVERY, idOf, idsOf, MATCHING, makeFirstRun, totalOf } from './bulk-data.js'

async function on<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Makes the same store as `makeRuns`, in an empty PostgreSQL database. */
export async function makeRunsOnPostgres(url: string, count: number): Promise<string[]> {
  await makeFirstRun(url, '')
  await on(url, (client) => multiply(client, totalOf(count)))
  return idsOf(count)
}

const isDecoy = (column: string, decoy: string): string =>
  `CASE WHEN i % ${DECOY_EVERY} = 0 THEN '${decoy}' ELSE ${column} END`
const PLACE = { url: isDecoy('url', 'https://work.test/daily'), path: isDecoy('path', '/daily') }
const LABELS = isDecoy('labels', '|other|')
const CREATED = 'created_at + (i / 500) % 3000000'
const RUN_ID = "'wfr_' || lpad(i::text, 18, '0')"
const MESSAGE_ID = "'msg_' || lpad(i::text, 10, '0') || substr(md5(i::text), 1, 12)"

/** Multiplies the only run of a store, because starting a million runs would take minutes. Adds sleeps and waits. */
async function multiply(client: pg.Client, total: number): Promise<void> {
  const numbers = `generate_series(2, ${total}) AS i`
  const rest = { ...PLACE, created_at: CREATED }
  await copyRows(client, 'runs', `seq = 1`, numbers, { seq: 'i', run_id: RUN_ID, labels: LABELS, ...rest })
  const message = { seq: 'i', message_id: MESSAGE_ID, group_key: 'i', next_at: 'next_at + i', labels: LABELS, ...rest }
  await copyRows(client, 'messages', 'group_key = 1', numbers, message)
  const step = { run_seq: 'i', message_id: MESSAGE_ID, created_at: CREATED }
  await copyRows(client, 'steps', 'run_seq = 1', numbers, step)
  await client.query(`UPDATE runs SET run_id = '${idOf(1)}' WHERE seq = 1`)
  await client.query(`INSERT INTO steps (run_seq, position, message_id, kind, body, created_at)
    SELECT run_seq, 1, message_id || '-1', 'step', '{"stepId":1,"stepType":"SleepFor"}', created_at
    FROM steps WHERE run_seq % 3 = 1`)
  await client.query(`INSERT INTO run_waits (account_id, run_seq, event_id, message_id, wait, deadline, created_at)
    SELECT account_id, group_key, 'paid', message_id, '{}', next_at, created_at FROM messages WHERE group_key % 3 = 2`)
  for (const table of ['runs', 'messages']) {
    await client.query(`SELECT setval(pg_get_serial_sequence('${table}', 'seq'), ${total})`)
  }
  await client.query('VACUUM ANALYZE')
}

async function copyRows(
  client: pg.Client,
  table: string,
  which: string,
  numbers: string,
  changed: Readonly<Record<string, string>>,
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT column_name AS name FROM information_schema.columns WHERE table_name = $1 AND table_schema = 'public'",
    [table],
  )
  const columns = rows.map(({ name }) => name)
  const values = columns.map((name) => changed[name] ?? name)
  await client.query(`INSERT INTO ${table} (${columns.join(', ')}) OVERRIDING SYSTEM VALUE
    SELECT ${values.join(', ')} FROM ${numbers}, (SELECT * FROM ${table} WHERE ${which}) AS model ORDER BY i`)
}

/** Copies a database that has no connections, and writes the copy to the disk. */
export async function copyDatabase(server: string, from: string, to: string): Promise<void> {
  await on(`${server}/postgres`, async (client) => {
    await client.query(`CREATE DATABASE ${to} TEMPLATE ${from} STRATEGY file_copy`)
    await client.query('CHECKPOINT')
  })
}

/** Deletes a database. */
export async function dropDatabase(server: string, name: string): Promise<void> {
  await on(`${server}/postgres`, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`))
}

const WHERE = `account_id = $1 AND state = 'RUN_STARTED' AND substr(url, 1, length($2)) = $2
  AND strpos(labels, $3) > 0 AND created_at > $4 AND created_at < $5`

/** Makes the changes of a cancel with bare SQL. */
export function cancelBareOnPostgres(url: string, count: number): Promise<BareTimes> {
  const values = [ACCOUNT, MATCHING.prefix, `|${MATCHING.label}|`, MATCHING.from, MATCHING.to]
  const groups = `SELECT seq FROM runs WHERE ${WHERE}`
  return on(url, async (client) => {
    const started = performance.now()
    await client.query(`DELETE FROM messages WHERE group_key IN (${groups}) AND state = 'pending'`, values)
    await client.query(`DELETE FROM run_waits WHERE run_seq IN (${groups})`, values)
    const deleted = performance.now()
    const update = `UPDATE runs SET state = 'RUN_CANCELED', finished_at = $5, canceled_by = 0 WHERE ${WHERE}`
    const { rowCount } = await client.query(update, values)
    const ended = performance.now()
    if (rowCount !== count) throw new Error(`${rowCount} rows were updated instead of ${count}`)
    return { updateMs: ended - deleted, deleteMs: deleted - started }
  })
}
