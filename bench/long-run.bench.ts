/**
 * A long run on PostgreSQL: Homeport publishes and delivers at 70 % of its peak rate beside millions of finished messages.
 * Prints for each minute the rates of publishes and deliveries, and the dead rows and size of the table. They show whether
 * the rate falls, and whether vacuum keeps up. The peak is measured before and after.
 *
 *   npm run bench long-run -- --store postgres
 *
 * `HOMEPORT_BENCH_MINUTES` sets how long it takes (default 30), `HOMEPORT_BENCH_FINISHED` how many finished messages are
 * made before (default 10,000,000; about 1 kB of disk each), `HOMEPORT_BENCH_RATE` the share of the peak (default 0.7),
 * `HOMEPORT_BENCH_PEAK` how many messages a peak is measured with (default 40,000).
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { createDatabase } from './support/databases.js'
import { percentile } from './support/figures.js'
import {
  indexSizes,
  messagesFacts,
  multiplyDelivered,
  onPostgres,
  type TableFacts,
} from './support/finished-messages.js'
import { postRequest, runHttpLoad } from './support/http-load.js'
import { startPeer } from './support/peers.js'
import { benchStore } from './support/store-choice.js'

const MINUTES = Number(process.env.HOMEPORT_BENCH_MINUTES ?? 30)
const FINISHED = Number(process.env.HOMEPORT_BENCH_FINISHED ?? 10_000_000)
const SHARE = Number(process.env.HOMEPORT_BENCH_RATE ?? 0.7)
const CONNECTIONS = 50
const PEAK_MESSAGES = Number(process.env.HOMEPORT_BENCH_PEAK ?? 40_000)
const MINUTE_MS = 60_000
const MIB = 2 ** 20
const BODY = 'x'.repeat(200)

interface Service {
  readonly port: number
  readonly token: string
}

/** Messages that have arrived so far. */
let arrived = 0
const sink = createServer((incoming, response) => {
  incoming.resume().on('end', () => {
    arrived++
    response.end('ok')
  })
})
await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
const target = `http://127.0.0.1:${(sink.address() as AddressInfo).port}/hook`
const headersOf = ({ token }: Service) => ({ authorization: `Bearer ${token}`, 'content-type': 'text/plain' })

async function untilArrived(count: number): Promise<void> {
  while (arrived < count) await pause(5)
}

/** Messages per second that 50 connections publish while they are delivered, until the last has arrived. */
async function peak(service: Service): Promise<number> {
  const began = performance.now()
  const load = { port: service.port, connections: CONNECTIONS, requests: PEAK_MESSAGES }
  const expected = arrived + PEAK_MESSAGES
  await runHttpLoad({ ...load, request: postRequest(`/v2/publish/${target}`, headersOf(service), BODY) })
  await untilArrived(expected)
  return (PEAK_MESSAGES * 1_000) / (performance.now() - began)
}

/** A minute of the steady part. */
interface Minute {
  readonly facts: TableFacts
  readonly delivered: number
  readonly latenciesMs: readonly number[]
}

/** Publishes at a fixed rate without waiting for answers, and reads the facts of the table after each minute. */
async function steady(service: Service, perSecond: number, look: () => Promise<TableFacts>): Promise<Minute[]> {
  const dispatcher = new Agent({ connections: CONNECTIONS })
  const options = { dispatcher, method: 'POST' as const, headers: headersOf(service), body: BODY }
  let latenciesMs: number[] = []
  const publish = async (plannedAt: number): Promise<void> => {
    const answer = await request(`http://127.0.0.1:${service.port}/v2/publish/${target}`, options)
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`a publish was answered ${answer.statusCode}`)
    latenciesMs.push(performance.now() - plannedAt)
  }
  const minutes: Minute[] = []
  const pending = new Set<Promise<void>>()
  const began = performance.now()
  let before = arrived
  for (let planned = 0; minutes.length < MINUTES; ) {
    const now = performance.now()
    for (; began + (planned * 1_000) / perSecond <= now; planned++) {
      const over: Promise<void> = publish(began + (planned * 1_000) / perSecond).finally(() => pending.delete(over))
      pending.add(over)
    }
    if (now - began >= (minutes.length + 1) * MINUTE_MS) {
      minutes.push({ facts: await look(), delivered: arrived - before, latenciesMs })
      before = arrived
      latenciesMs = []
    }
    await pause(2)
  }
  await Promise.all(pending)
  await dispatcher.close()
  return minutes
}

const whole = (value: number): string => Math.round(value).toLocaleString('en')

/** The first and the last five minutes, or a third of a shorter run each. */
function show(minutes: readonly Minute[]): void {
  console.table(
    minutes.map(({ facts, delivered, latenciesMs }) => ({
      'delivered a second': whole(delivered / 60),
      'publish p50 ms': percentile(latenciesMs, 0.5).toFixed(1),
      'publish p99 ms': percentile(latenciesMs, 0.99).toFixed(1),
      'dead rows': whole(facts.deadRows),
      autovacuums: facts.vacuums,
      'table MiB': whole(facts.tableBytes / MIB),
      'indexes MiB': whole(facts.indexBytes / MIB),
    })),
  )
  const some = Math.max(1, Math.min(5, Math.floor(minutes.length / 3)))
  const rate = (part: readonly Minute[]): number =>
    part.reduce((sum, one) => sum + one.delivered, 0) / (60 * part.length)
  const [first, last] = [rate(minutes.slice(0, some)), rate(minutes.slice(-some))]
  console.log(
    `delivered a second in the first ${some} minutes ${whole(first)}, in the last ${whole(last)}: ${(last / first).toFixed(3)}`,
  )
}

async function run(): Promise<void> {
  const postgres = await startPostgresServer('full')
  await createDatabase(postgres.url, 'homeport_bench')
  const url = `${postgres.url}/homeport_bench`
  const server = await startPeer<Service>('queue-server.ts', {
    BENCH_STORE: url,
    BENCH_CONCURRENCY: String(2 * CONNECTIONS),
  })
  await peak(server.facts) // warms up, and makes the first finished messages
  const began = performance.now()
  await multiplyDelivered(url, FINISHED)
  console.log(`${whole(FINISHED)} finished messages made in ${whole((performance.now() - began) / 1_000)} s`)
  await onPostgres(url, async (client) => {
    const before = await peak(server.facts)
    const perSecond = before * SHARE
    console.log(`peak ${whole(before)} a second; ${MINUTES} minutes at ${whole(perSecond)}`)
    show(await steady(server.facts, perSecond, () => messagesFacts(client)))
    console.log(`peak afterwards ${whole(await peak(server.facts))} a second`)
    console.table((await indexSizes(client)).map(({ name, bytes }) => ({ index: name, MiB: whole(bytes / MIB) })))
  })
  await server.stop()
  await postgres.stop()
}

if (benchStore === 'postgres') await run()
else console.log('long-run needs --store postgres')
sink.closeAllConnections()
sink.close()
