/**
 * The cost of a large backlog. Publishes batches of messages that are due in weeks, one message in ten into one queue.
 * Measures before, during and after that: the memory of the server, the time of operations that read pending messages,
 * and the latency from publish to delivery of 200 messages per second that are due at once. Then it restarts the server,
 * and measures the time of the start and the memory again.
 *
 *   npm run bench backlog-memory
 *   node --import ./scripts/lib/measured.mjs bench/backlog-memory.bench.ts --messages 10000000 --seconds 10
 *
 * A message takes about 700 bytes of disk.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Agent, request } from 'undici'
import { percentile } from './support/figures.js'
import { postRequest, runHttpLoad } from './support/http-load.js'
import { type Peer, startPeer } from './support/peers.js'

const { values: given } = parseArgs({
  options: { messages: { type: 'string', default: '1000000' }, seconds: { type: 'string', default: '5' } },
})
const MESSAGES = Number(given.messages)
const SECONDS = Number(given.seconds)
const RATE = 200
const PER_BATCH = 100
const CONNECTIONS = 10
const HOSTS = 50
const QUEUED_EVERY = 10
/** The shares of the messages after which to measure. */
const STEPS = [0, 0.1, 1]
const MIB = 2 ** 20

interface Service {
  readonly url: string
  readonly token: string
}

const arrivals: number[] = []
const sink = createServer((incoming, response) => {
  let body = ''
  incoming.setEncoding('utf8').on('data', (chunk: string) => {
    body += chunk
  })
  incoming.on('end', () => {
    arrivals.push(performance.now() - Number(body))
    response.end()
  })
})
await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
const target = `http://127.0.0.1:${(sink.address() as AddressInfo).port}/hook`
const dataDir = mkdtempSync(join(tmpdir(), 'backlog-bench-'))

/** Publishes this many messages that are due in weeks. Returns messages per second. */
async function fill({ url, token }: Service, count: number): Promise<number> {
  const items = Array.from({ length: PER_BATCH }, (_, index) => ({
    destination: `http://host-${index % HOSTS}.test/hook`,
    body: 'x'.repeat(200),
    headers: { 'content-type': 'application/json', 'upstash-delay': `${20 + (index % 10)}d`, 'upstash-label': 'later' },
    ...(index % QUEUED_EVERY === 0 && { queue: 'long' }),
  }))
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const batch = postRequest('/v2/batch', headers, JSON.stringify(items))
  const load = { port: Number(new URL(url).port), connections: CONNECTIONS, request: batch }
  return (await runHttpLoad({ ...load, requests: count / PER_BATCH })).perSecond * PER_BATCH
}

/** Milliseconds from publish to arrival of messages due at once. */
async function latencies({ url, token }: Service): Promise<number[]> {
  arrivals.length = 0
  const dispatcher = new Agent({ connections: 50 })
  const options = { dispatcher, method: 'POST' as const, headers: { authorization: `Bearer ${token}` } }
  const began = performance.now()
  for (let n = 0; n < RATE * SECONDS; n++) {
    await pause(Math.max(0, began + (n * 1_000) / RATE - performance.now()))
    const body = String(performance.now())
    void request(`${url}/v2/publish/${target}`, { ...options, body }).then((answer) => answer.body.dump())
  }
  while (arrivals.length < RATE * SECONDS) await pause(10)
  await dispatcher.close()
  return arrivals.slice(RATE) // the first second warms up
}

/** The time of one request, milliseconds. */
async function ask({ url, token }: Service, method: 'GET' | 'DELETE', path: string): Promise<number> {
  const began = performance.now()
  const answer = await fetch(url + path, { method, headers: { authorization: `Bearer ${token}` } })
  await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}`)
  return performance.now() - began
}

function memoryOf({ child }: Peer<unknown>): { rssBytes: number; pssBytes: number } {
  const text = readFileSync(`/proc/${child.pid}/smaps_rollup`, 'utf8')
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]) * 1_024
  return { rssBytes: bytes('Rss'), pssBytes: bytes('Pss') }
}

const startServer = (): Promise<Peer<Service>> => startPeer<Service>('bulk-server.ts', { DATA_DIR: dataDir })

async function costs(peer: Peer<Service>): Promise<Record<string, number>> {
  const times = await latencies(peer.facts)
  const { rssBytes, pssBytes } = memoryOf(peer)
  const row: Record<string, number> = {
    'RSS MiB': rssBytes / MIB,
    'PSS MiB': pssBytes / MIB,
    'delivery p50 ms': percentile(times, 0.5),
    'delivery p99 ms': percentile(times, 0.99),
    'file MiB': statSync(join(dataDir, 'homeport.sqlite')).size / MIB,
    'GET queues ms': await ask(peer.facts, 'GET', '/v2/queues'),
    'GET logs ms': await ask(peer.facts, 'GET', '/v2/logs?count=100'),
    'GET logs, none match, ms': await ask(peer.facts, 'GET', '/v2/logs?label=none'),
    'GET flow keys ms': await ask(peer.facts, 'GET', '/v2/flowControl'),
    'DELETE messages, none match, ms': await ask(peer.facts, 'DELETE', '/v2/messages?label=none'),
  }
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value.toFixed(1))]))
}

/** Milliseconds from the start of a server on this data until it has delivered a message. */
async function startAgain(): Promise<{ peer: Peer<Service>; readyMs: number; deliveredMs: number }> {
  const began = performance.now()
  const peer = await startServer()
  const readyMs = performance.now() - began
  arrivals.length = 0
  const headers = { authorization: `Bearer ${peer.facts.token}` }
  await fetch(`${peer.facts.url}/v2/publish/${target}`, { method: 'POST', headers, body: '0' })
  while (arrivals.length === 0) await pause(1)
  return { peer, readyMs, deliveredMs: performance.now() - began }
}

const rows: Record<string, Record<string, number>> = {}
const first = await startAgain()
let peer = first.peer
let pending = 0
for (const share of STEPS) {
  const wanted = Math.round((MESSAGES * share) / PER_BATCH) * PER_BATCH
  const perSecond = wanted > pending ? await fill(peer.facts, wanted - pending) : 0
  pending = wanted
  rows[`${pending} pending`] = { 'published a second': Math.round(perSecond), ...(await costs(peer)) }
}
await peer.stop()
const again = await startAgain()
peer = again.peer
rows[`${pending} pending, after a restart`] = await costs(peer)
console.table(Object.fromEntries(Object.keys(rows).map((name) => [name, rows[name]])))
const ms = (value: number): string => `${Math.round(value)} ms`
console.log(`start with nothing pending: ready after ${ms(first.readyMs)}, delivered after ${ms(first.deliveredMs)}`)
console.log(`start with all pending: ready after ${ms(again.readyMs)}, delivered after ${ms(again.deliveredMs)}`)
await peer.stop()
rmSync(dataDir, { recursive: true, force: true })
sink.closeAllConnections()
sink.close()
