/** BullMQ behind a bare node:http server, as a process of its own. Says `{port}` on its IPC channel. */
import { Queue } from 'bullmq'
import { type FrontJob, startFront } from './publish-front.js'

const connection = { host: '127.0.0.1', port: Number(process.env.BENCH_REDIS_PORT) }
const queue = new Queue<FrontJob>('bench', { connection })
const opts = { attempts: 4 }
const port = await startFront({
  add: async (job) => String((await queue.add('message', job, opts)).id),
  addMany: (jobs) => queue.addBulk(jobs.map((data) => ({ name: 'message', data, opts }))),
})
process.send?.({ port })
process.once('disconnect', async () => {
  await queue.close()
  process.exit(0)
})
