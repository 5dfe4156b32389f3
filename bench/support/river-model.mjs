/**
 * The way River (a queue for Go) uses PostgreSQL, on the server of `POSTGRES_URL`, as a separate process: jobs are
 * claimed in batches with `SKIP LOCKED` and completed in batches. With `BENCH_ROLE=server` it accepts messages over HTTP
 * and sends `{port}`; else it is a worker that delivers them. It is a model in Node, not River itself: it shows the cost of
 * this design for the server, in the same language and with the same driver as Homeport.
 */
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { deliverer } from './deliver.ts'
import { startFront } from './publish-front.ts'

/** The least time between two claims: River's minimum while there is work, and its default when there is none. */
const CLAIM_MS = { busy: 1, idle: 100 }
/** River's time between two batches of completions. */
const COMPLETE_EVERY_MS = 50
const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 50)
const pool = new pg.Pool({ connectionString: `${process.env.POSTGRES_URL}/river_bench`, max: 20 })
pool.on('error', () => undefined)

/** The columns and indexes of River's table that every job uses. */
const TABLE = `CREATE TABLE river_job (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  state text NOT NULL DEFAULT 'available',
  attempt smallint NOT NULL DEFAULT 0,
  max_attempts smallint NOT NULL,
  attempted_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  finalized_at timestamptz,
  scheduled_at timestamptz NOT NULL DEFAULT now(),
  priority smallint NOT NULL DEFAULT 1,
  args jsonb NOT NULL,
  attempted_by text[],
  kind text NOT NULL,
  queue text NOT NULL DEFAULT 'default'
)`
const INDEXES = [
  'CREATE INDEX river_job_kind ON river_job (kind)',
  'CREATE INDEX river_job_finalized ON river_job (state, finalized_at) WHERE finalized_at IS NOT NULL',
  'CREATE INDEX river_job_fetching ON river_job (state, queue, priority, scheduled_at, id)',
]

async function serve() {
  for (const statement of [TABLE, ...INDEXES]) await pool.query(statement)
  const one = {
    name: 'one',
    text: "INSERT INTO river_job (args, kind, max_attempts) VALUES ($1, 'message', 4) RETURNING id",
  }
  const many = {
    name: 'many',
    text: "INSERT INTO river_job (args, kind, max_attempts) SELECT unnest($1::jsonb[]), 'message', 4 RETURNING id",
  }
  const port = await startFront({
    add: async (job) => String((await pool.query({ ...one, values: [JSON.stringify(job)] })).rows[0].id),
    addMany: (jobs) => pool.query({ ...many, values: [jobs.map((job) => JSON.stringify(job))] }),
  })
  process.send?.({ port })
}

const CLAIM = {
  name: 'claim',
  text: `WITH locked AS (
      SELECT id FROM river_job WHERE state = 'available' AND queue = 'default' AND scheduled_at <= now()
      ORDER BY priority, scheduled_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = now(), attempted_by = ARRAY['bench']
    FROM locked WHERE river_job.id = locked.id RETURNING river_job.id, river_job.args`,
}
const COMPLETE = {
  name: 'complete',
  text: "UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = ANY($1::bigint[]) AND state = 'running'",
}

async function completeInBatches(done) {
  for (;;) {
    await pause(COMPLETE_EVERY_MS)
    const ids = done.splice(0)
    if (ids.length > 0) await pool.query({ ...COMPLETE, values: [ids] })
  }
}

async function claimAndDeliver(done) {
  const deliver = deliverer(concurrency)
  let running = 0
  let wake = () => undefined
  for (;;) {
    const claimedAt = performance.now()
    const { rows } = await pool.query({ ...CLAIM, values: [concurrency - running] })
    for (const { id, args } of rows) {
      running++
      void deliver(args).then(() => {
        running--
        done.push(id)
        wake()
      })
    }
    await pause(Math.max(0, claimedAt + CLAIM_MS[rows.length > 0 ? 'busy' : 'idle'] - performance.now()))
    // Waits until half of a batch has ended before the next claim.
    while (running > concurrency / 2) {
      await new Promise((resolve) => {
        wake = resolve
      })
    }
  }
}

async function work() {
  const done = []
  void completeInBatches(done).catch(() => undefined)
  void claimAndDeliver(done).catch(() => undefined)
  process.send?.({ ready: true })
}

await (process.env.BENCH_ROLE === 'server' ? serve() : work())
process.once('disconnect', () => process.exit(0))
