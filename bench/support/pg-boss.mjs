/**
 * pg-boss on the PostgreSQL server of `POSTGRES_URL`, as a separate process. With `BENCH_ROLE=server` it accepts
 * messages over HTTP and sends `{port}`; else it is a worker that delivers them, tuned for throughput: it fetches many
 * at once into a local queue, while others are being delivered, and completes them in batches.
 */
import { setTimeout as pause } from 'node:timers/promises'
import PgBoss from 'pg-boss'
import { deliverer } from './deliver.ts'
import { startFront } from './publish-front.ts'

const QUEUE = 'bench'
const POLL_MS = 500
const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 50)
const boss = new PgBoss({
  connectionString: `${process.env.POSTGRES_URL}/pgboss_bench`,
  max: 20,
  supervise: false,
  schedule: false,
})
boss.on('error', () => undefined)
await boss.start()

async function serve() {
  await boss.createQueue(QUEUE)
  const options = { retryLimit: 3 }
  const port = await startFront({
    add: (job) => boss.send(QUEUE, job, options),
    addMany: (jobs) => boss.insert(jobs.map((data) => ({ name: QUEUE, data, ...options }))),
  })
  process.send?.({ port })
}

/** Fetches, delivers and completes one batch after another, with a share of the connections. */
async function workLane(deliver, share) {
  for (;;) {
    const jobs = await boss.fetch(QUEUE, { batchSize: 10 * concurrency })
    if (jobs.length === 0) {
      await pause(POLL_MS)
      continue
    }
    const left = [...jobs]
    const one = async () => {
      for (let job = left.pop(); job; job = left.pop()) await deliver(job.data)
    }
    await Promise.all(Array.from({ length: share }, one))
    await boss.complete(
      QUEUE,
      jobs.map((job) => job.id),
    )
  }
}

async function work() {
  const deliver = deliverer(concurrency)
  for (let lane = 0; lane < 2; lane++) void workLane(deliver, concurrency / 2).catch(() => undefined)
  process.send?.({ ready: true })
}

await (process.env.BENCH_ROLE === 'server' ? serve() : work())
process.once('disconnect', () => process.exit(0))
