/**
 * BullMQ on the Redis server of `BENCH_REDIS_PORT`, as a separate process. With `BENCH_ROLE=server` it accepts messages
 * over HTTP and sends `{port}`; else it is a worker that delivers them.
 */
import { Queue, Worker } from 'bullmq'
import { deliverer } from './deliver.ts'
import { startFront } from './publish-front.ts'

const connection = { host: '127.0.0.1', port: Number(process.env.BENCH_REDIS_PORT) }
const concurrency = Number(process.env.BENCH_CONCURRENCY)
const opts = { attempts: 4 }

async function serve() {
  const queue = new Queue('bench', { connection })
  const port = await startFront({
    add: async (job) => String((await queue.add('message', job, opts)).id),
    addMany: (jobs) => queue.addBulk(jobs.map((data) => ({ name: 'message', data, opts }))),
  })
  process.send?.({ port })
  return () => queue.close()
}

async function work() {
  const deliver = deliverer(concurrency)
  const options = { connection, concurrency, removeOnComplete: { count: 1_000 } }
  const worker = new Worker('bench', (job) => deliver(job.data), options)
  await worker.waitUntilReady()
  process.send?.({ ready: true })
  return () => worker.close()
}

const stop = await (process.env.BENCH_ROLE === 'server' ? serve() : work())
process.once('disconnect', async () => {
  await stop()
  process.exit(0)
})
