/**
 * graphile-worker on the PostgreSQL server of `POSTGRES_URL`, as a separate process. With `BENCH_ROLE=server` it
 * accepts messages over HTTP and sends `{port}`; else it is a worker that delivers them, tuned for throughput as its
 * manual says: a local queue, and completions in batches.
 */
import { Logger, makeWorkerUtils, run, WorkerPreset } from 'graphile-worker'
import { deliverer } from './deliver.ts'
import { startFront } from './publish-front.ts'

const connectionString = `${process.env.POSTGRES_URL}/graphile_bench`
const concurrentJobs = Number(process.env.BENCH_CONCURRENCY ?? 50)
const logger = new Logger(() => () => undefined)
const spec = { maxAttempts: 4 }

async function serve() {
  const utils = await makeWorkerUtils({ connectionString, maxPoolSize: 20, logger })
  await utils.migrate()
  const jobOf = (payload) => ({ identifier: 'message', payload, ...spec })
  const port = await startFront({
    add: async (job) => (await utils.addJob('message', job, spec)).id,
    addMany: (jobs) => utils.addJobs(jobs.map(jobOf)),
  })
  process.send?.({ port })
  return () => utils.release()
}

async function work() {
  const deliver = deliverer(concurrentJobs)
  const worker = {
    connectionString,
    concurrentJobs,
    maxPoolSize: 20,
    pollInterval: 500,
    localQueue: { size: 10 * concurrentJobs },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger,
  }
  const runner = await run({
    preset: { extends: [WorkerPreset], worker },
    taskList: { message: deliver },
    noHandleSignals: true,
  })
  process.send?.({ ready: true })
  return () => runner.stop()
}

const stop = await (process.env.BENCH_ROLE === 'server' ? serve() : work())
process.once('disconnect', async () => {
  await stop()
  process.exit(0)
})
