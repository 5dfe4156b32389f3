/**
 * The floor of a queue on SQLite: the requests and commits of Homeport, and nothing else. It stores a row for each message
 * before it answers, delivers the message over HTTP, and deletes the row. It has no settings, ids, signatures, limits,
 * retries or logs, and no second thread. Sends `{port}` on its IPC channel; the message `deliver` starts the deliveries.
 */
import { once } from 'node:events'
import { deliverer } from './deliver.js'
import { openFloorRows } from './floor-rows.js'
import { type FrontJob, startFront } from './publish-front.js'

const rows = openFloorRows()
const inFlight = Number(process.env.BENCH_CONCURRENCY ?? 50)
const deliver = deliverer(inFlight)
const waiting: { readonly seq: number; readonly job: FrontJob }[] = []
let next = 0
let sending = 0
let isDelivering = false

function pump(): void {
  for (; isDelivering && sending < inFlight && next < waiting.length; next++) {
    const one = waiting[next]
    if (one) void send(one)
  }
  if (next < waiting.length) return
  waiting.length = 0
  next = 0
}

async function send({ seq, job }: { readonly seq: number; readonly job: FrontJob }): Promise<void> {
  sending++
  await deliver(job)
  sending--
  rows.remove(seq)
  pump()
}

async function add(job: FrontJob): Promise<string> {
  const seq = await rows.add(JSON.stringify(job))
  waiting.push({ seq, job })
  setImmediate(pump)
  return String(seq)
}

process.on('message', (word) => {
  isDelivering = word === 'deliver'
  pump()
})
const port = await startFront({ add, addMany: (jobs) => Promise.all(jobs.map(add)) })
process.send?.({ port })
await once(process, 'disconnect')
process.exit(0)
