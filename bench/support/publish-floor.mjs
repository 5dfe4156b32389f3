/**
 * The floor of publishing batches to PostgreSQL, as a separate process that sends `{port}`: a bare HTTP front that inserts
 * the messages into Homeport's own table in the database of `BENCH_STORE`. Each request is one prepared insert, which gets
 * the values that all rows share only once. It checks no messages, returns no ids, and nobody delivers the messages.
 */
import { crc32 } from 'node:zlib'
import pg from 'pg'
import { newId } from '../../src/base/index.ts'
import { startFront } from './publish-front.ts'

const DAYS_7 = 7 * 86_400_000
const pool = new pg.Pool({ connectionString: process.env.BENCH_STORE, max: 20 })
const SHARED = {
  account_id: 'acc_test',
  kind: 'http',
  state: 'pending',
  url: '',
  method: 'POST',
  config: '{}',
  max_retries: 3,
  headers: '{"Content-Type":["application/json"]}',
  retried: 0,
  next_at: 0,
  created_at: 0,
  labels: '',
  host: '127.0.0.1:9',
  path: '/hook',
  caller_ip: '127.0.0.1',
  partition: 0,
}
const columns = Object.keys(SHARED)
const text = `INSERT INTO messages (message_id, body, body_crc, ${columns.join(', ')})
  SELECT *, ${columns.map((_, index) => `$${index + 4}`).join(', ')} FROM unnest($1::text[], $2::bytea[], $3::bigint[])`

async function addMany(jobs) {
  const now = Date.now()
  const shared = { ...SHARED, url: jobs[0].target, created_at: now, next_at: now + DAYS_7 }
  const ids = jobs.map(() => newId('msg_', now))
  const bodies = jobs.map(({ body }) => Buffer.from(body))
  const values = [ids, bodies, bodies.map((body) => crc32(body)), ...Object.values(shared)]
  await pool.query({ name: 'many', text, values })
}

const port = await startFront({
  add: async (job) => {
    await addMany([job])
    return ''
  },
  addMany,
})
process.send?.({ port })
process.once('disconnect', () => process.exit(0))
