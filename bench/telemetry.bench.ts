/**
 * The cost of OpenTelemetry: processor time of the server for each message that is published and delivered, in turns
 *
 * - off: without an endpoint, which is the default. Goal: less than 1 % more than a version without OpenTelemetry;
 * - not sampled: with an endpoint, for callers whose trace context says that they do not sample;
 * - on: two spans for each message, exported as protobuf to a collector that discards them.
 *
 *   npm run bench telemetry
 *
 * `HOMEPORT_BENCH_BASE` names the folder of an older version with its packages, to compare with ("before").
 * `HOMEPORT_BENCH_REQUESTS` sets how many messages a round has, `HOMEPORT_BENCH_ROUNDS` how many rounds there are.
 *
 * Processor time of the whole process (Linux only) depends less on other load of the machine than elapsed time does.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { median } from './support/figures.js'
import { runHttpLoad } from './support/http-load.js'
import { type Peer, startPeer } from './support/peers.js'
import { processUs } from './support/process-time.js'

const REQUESTS = Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 10_000)
const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 9)
const BASE = process.env.HOMEPORT_BENCH_BASE
const CONNECTIONS = 20
const BODY = 'x'.repeat(200)
/** Spans are exported after this time at the latest, so a round waits for its own. */
const EXPORT_DELAY_MS = 300
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'

async function listen(handler: RequestListener): Promise<{ readonly url: string; close(): void }> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => server.close().closeAllConnections() }
}

let arrivals = 0
const sink = await listen((request, response) => {
  request.resume().on('end', () => {
    arrivals++
    response.end('ok')
  })
})
let exportedBytes = 0
const collector = await listen((request, response) => {
  request.on('data', (chunk: Buffer) => (exportedBytes += chunk.length)).on('end', () => response.end())
})

interface Contestant {
  readonly name: string
  readonly flags: '00' | '01'
  readonly peer: Peer<{ readonly port: number; readonly token: string }>
}

async function start(name: string, flags: '00' | '01', env: Readonly<Record<string, string>>, folder?: string) {
  const here = dirname(fileURLToPath(import.meta.url))
  const module = folder === undefined ? 'queue-server.ts' : join(folder, 'bench/support/queue-server.ts')
  const path = folder === undefined ? module : relative(join(here, 'support'), module)
  return { name, flags, peer: await startPeer<{ port: number; token: string }>(path, env) }
}

const ENDPOINT = {
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
  OTEL_BSP_SCHEDULE_DELAY: String(EXPORT_DELAY_MS),
  OTEL_BSP_MAX_QUEUE_SIZE: '1000000',
}
const contestants: readonly Contestant[] = [
  ...(BASE === undefined ? [] : [await start('before', '01', {}, BASE)]),
  await start('off', '01', {}),
  await start('not sampled', '00', ENDPOINT),
  await start('on', '01', ENDPOINT),
]

/** Processor time of the server for one message, microseconds. */
async function messageUs({ flags, peer: { facts, child } }: Contestant): Promise<number> {
  const head = [
    `POST /v2/publish/${sink.url}/hook HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${facts.token}`,
    `traceparent: ${TRACE}-${flags}`,
    `Content-Length: ${BODY.length}`,
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n${BODY}`)
  const pid = child.pid ?? 0
  arrivals = 0
  const before = processUs(pid)
  await runHttpLoad({ port: facts.port, connections: CONNECTIONS, requests: REQUESTS, request })
  while (arrivals < REQUESTS) await pause(10)
  await pause(3 * EXPORT_DELAY_MS)
  return (processUs(pid) - before) / REQUESTS
}

const spent = new Map(contestants.map(({ name }) => [name, [] as number[]]))
for (let round = 0; round <= ROUNDS; round++) {
  // Each round begins with another contestant, so that none always follows the same one.
  const turn = contestants.map((_, index) => contestants[(index + round) % contestants.length] as Contestant)
  for (const contestant of turn) {
    const us = await messageUs(contestant)
    if (round > 0) spent.get(contestant.name)?.push(us) // the first round warms up
  }
}
const off = median(spent.get('off') ?? [])
const rows = contestants.map(({ name }) => {
  const rounds = spent.get(name) ?? []
  const us = median(rounds)
  const row = { 'µs of a message (median)': Number(us.toFixed(1)), 'to off': `${((us / off - 1) * 100).toFixed(1)} %` }
  return [name, { ...row, rounds: rounds.map((one) => one.toFixed(0)).join(' ') }]
})
console.table(Object.fromEntries(rows))
console.log(`exported: ${(exportedBytes / REQUESTS / (ROUNDS + 1)).toFixed(0)} bytes a message`)
await Promise.all(contestants.map(({ peer }) => peer.stop()))
sink.close()
collector.close()
