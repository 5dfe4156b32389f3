/** A BullMQ worker that delivers its jobs over HTTP, as a process of its own. Says `{ready}` on its IPC channel. */
import { Worker } from 'bullmq'
import { deliverer } from './deliver.js'
import type { FrontJob } from './publish-front.js'

const connection = { host: '127.0.0.1', port: Number(process.env.BENCH_REDIS_PORT) }
const concurrency = Number(process.env.BENCH_CONCURRENCY)
const deliver = deliverer(concurrency)
const options = { connection, concurrency, removeOnComplete: { count: 1_000 } }
const worker = new Worker<FrontJob>('bench', (job) => deliver(job.data), options)
await worker.waitUntilReady()
process.send?.({ ready: true })
process.once('disconnect', async () => {
  await worker.close()
  process.exit(0)
})
