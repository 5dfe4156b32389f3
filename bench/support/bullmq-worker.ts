/** A BullMQ worker that delivers its jobs over HTTP, as a process of its own. Says `{ready}` on its IPC channel. */
import { Worker } from 'bullmq'
import { Agent, request } from 'undici'

const connection = { host: '127.0.0.1', port: Number(process.env.BENCH_REDIS_PORT) }
const concurrency = Number(process.env.BENCH_CONCURRENCY)
const dispatcher = new Agent({ connections: concurrency, pipelining: 1 })
const worker = new Worker(
  'bench',
  async (job: { data: { target: string; body: string } }) => {
    const { target, body } = job.data
    const answer = await request(target, {
      method: 'POST',
      body,
      dispatcher,
      headers: { 'content-type': 'application/json' },
    })
    await answer.body.dump()
    if (answer.statusCode > 299) throw new Error(`status ${answer.statusCode}`)
  },
  { connection, concurrency, removeOnComplete: { count: 1_000 } },
)
await worker.waitUntilReady()
process.send?.({ ready: true })
process.once('disconnect', async () => {
  await worker.close()
  process.exit(0)
})
