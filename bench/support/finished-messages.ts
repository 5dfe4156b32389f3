import pg from 'pg'

/** Rows that one statement inserts. */
const CHUNK = 200_000
const DAY_MS = 86_400_000
/** Finished messages are spread over this many days, fewer than the retention. */
const DAYS = 6

/** Runs work on a connection of its own. */
export async function onPostgres<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/**
 * Multiplies the first delivered message of a store, because delivering millions would take hours. The end times of the
 * copies ascend with their numbers, as with real messages.
 */
export function multiplyDelivered(url: string, count: number): Promise<void> {
  return onPostgres(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'messages' AND table_schema = 'public'",
    )
    const columns = rows.map(({ name }) => name).filter((name) => name !== 'seq')
    const at = (column: string): string => `${column} - ${DAYS * DAY_MS} + (i * ${DAYS * DAY_MS}::bigint / ${count})`
    const changed: Readonly<Record<string, string>> = {
      message_id: "'msg_' || lpad(i::text, 10, '0') || substr(md5(i::text), 1, 12)",
      ...Object.fromEntries(['next_at', 'created_at', 'started_at', 'finished_at'].map((name) => [name, at(name)])),
    }
    const values = columns.map((name) => changed[name] ?? name)
    const model = "(SELECT * FROM messages WHERE state = 'delivered' ORDER BY seq LIMIT 1) AS model"
    for (let from = 1; from <= count; from += CHUNK) {
      const numbers = `generate_series(${from}, ${Math.min(count, from + CHUNK - 1)}) AS i`
      await client.query(
        `INSERT INTO messages (${columns.join(', ')}) SELECT ${values.join(', ')} FROM ${numbers}, ${model}`,
      )
    }
    await client.query('VACUUM ANALYZE messages')
    await client.query('CHECKPOINT')
  })
}

/** What PostgreSQL says about the table of messages. */
export interface TableFacts {
  readonly liveRows: number
  readonly deadRows: number
  readonly vacuums: number
  readonly tableBytes: number
  readonly indexBytes: number
}

/** Reads the statistics of PostgreSQL about the table of messages. */
export async function messagesFacts(client: pg.Client): Promise<TableFacts> {
  const { rows } = await client.query<Record<keyof TableFacts, string>>(
    `SELECT n_live_tup AS "liveRows", n_dead_tup AS "deadRows", autovacuum_count AS vacuums,
       pg_table_size(relid) AS "tableBytes", pg_indexes_size(relid) AS "indexBytes"
     FROM pg_stat_user_tables WHERE relname = 'messages'`,
  )
  const [found] = rows
  if (!found) throw new Error('the database has no messages')
  const { liveRows, deadRows, vacuums, tableBytes, indexBytes } = found
  return {
    liveRows: Number(liveRows),
    deadRows: Number(deadRows),
    vacuums: Number(vacuums),
    tableBytes: Number(tableBytes),
    indexBytes: Number(indexBytes),
  }
}

/** The sizes of the indexes of messages, largest first. */
export async function indexSizes(
  client: pg.Client,
): Promise<readonly { readonly name: string; readonly bytes: number }[]> {
  const { rows } = await client.query<{ name: string; bytes: string }>(
    `SELECT indexrelname AS name, pg_relation_size(indexrelid) AS bytes FROM pg_stat_user_indexes
     WHERE relname = 'messages' ORDER BY 2 DESC`,
  )
  return rows.map(({ name, bytes }) => ({ name, bytes: Number(bytes) }))
}
