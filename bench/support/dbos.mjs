/**
 * DBOS on the PostgreSQL server of `POSTGRES_URL`, as a separate process. It is a library, so the load is in the
 * same process, which saves the HTTP requests of the others. Sends `ready`, then answers
 * `{kind: 'measure', runs, atATime}` with the milliseconds of each run and of all, and
 * `{kind: 'cancel', count}` with the milliseconds that cancelling this many unfinished workflows by id took.
 */
import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk'
import pg from 'pg'

const systemDatabaseUrl = `${process.env.POSTGRES_URL}/dbos_bench`
const STEPS = 5

async function fiveSteps() {
  for (let step = 1; step <= STEPS; step++) await DBOS.runStep(async () => 'result', { name: `step ${step}` })
  return 'done'
}
const run = DBOS.registerWorkflow(fiveSteps, { name: 'fiveSteps' })

async function measure({ runs, atATime }) {
  const latenciesMs = []
  let left = runs
  const worker = async () => {
    while (left-- > 0) {
      const started = performance.now()
      await run()
      latenciesMs.push(performance.now() - started)
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: atATime }, worker))
  return { elapsedMs: performance.now() - started, latenciesMs }
}

/** Inserts rows as DBOS writes them for started, waiting workflows, in bulk, because starting them takes minutes. */
async function makeUnfinished(pool, count) {
  await run()
  const { rows } = await pool.query(
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'dbos' AND table_name = 'workflow_status'",
  )
  const others = rows
    .map((row) => row.column_name)
    .filter((name) => !['workflow_uuid', 'status', 'output', 'completed_at'].includes(name))
  const names = others.map((name) => `"${name}"`).join(', ')
  await pool.query(
    `INSERT INTO dbos.workflow_status (workflow_uuid, status, ${names})
     SELECT 'unfinished-' || number, 'PENDING', ${names}
     FROM (SELECT * FROM dbos.workflow_status LIMIT 1) AS model, generate_series(1, $1) AS number`,
    [count],
  )
  await pool.query('VACUUM ANALYZE dbos.workflow_status')
  // The other stores also begin after a checkpoint, so the write-ahead log gets a copy of each page that changes.
  await pool.query('CHECKPOINT')
}

async function cancel({ count }) {
  const pool = new pg.Pool({ connectionString: systemDatabaseUrl })
  await makeUnfinished(pool, count)
  const client = await DBOSClient.create({ systemDatabaseUrl })
  const ids = Array.from({ length: count }, (_, index) => `unfinished-${index + 1}`)
  const started = performance.now()
  await client.cancelWorkflows(ids)
  const elapsedMs = performance.now() - started
  const { rows } = await pool.query("DELETE FROM dbos.workflow_status WHERE status = 'CANCELLED' RETURNING 1")
  if (rows.length !== count) throw new Error(`DBOS cancelled ${rows.length} workflows instead of ${count}`)
  await client.destroy()
  await pool.end()
  return { elapsedMs }
}

DBOS.setConfig({
  name: 'bench',
  systemDatabaseUrl,
  systemDatabasePoolSize: 50,
  logLevel: 'error',
  runAdminServer: false,
})
await DBOS.launch()
process.on('message', async (message) => {
  process.send(message.kind === 'measure' ? await measure(message) : await cancel(message))
})
process.once('disconnect', async () => {
  await DBOS.shutdown()
  process.exit(0)
})
process.send('ready')
