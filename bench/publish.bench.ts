/**
 * Publishing over HTTP, each request answered after its message is on disk, 50 connections: Homeport on SQLite
 * (synchronous=FULL) against BullMQ behind a bare node:http server on Redis (appendfsync always), in turns.
 *
 *   npm run bench publish
 */
import { median, postRequest, runHttpLoad } from './support/http-load.js'
import { startPeer, startRedis } from './support/peers.js'

const CONNECTIONS = 50
const REQUESTS = Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 20_000)
const ROUNDS = 5
const BODY = JSON.stringify({ order: 4711, items: ['a', 'b', 'c'], note: 'x'.repeat(150) })

const redis = await startRedis()
const homeport = await startPeer<{ port: number; token: string }>('queue-server.ts')
const bullmq = await startPeer<{ port: number }>('bullmq-server.ts', { BENCH_REDIS_PORT: String(redis.port) })

const json = { 'content-type': 'application/json' }
// Far in the future: what is measured is publishing alone, as BullMQ has no worker either.
const headers = { ...json, authorization: `Bearer ${homeport.facts.token}`, 'upstash-delay': '7d' }
const loads = {
  homeport: {
    port: homeport.facts.port,
    request: postRequest('/v2/publish/http://127.0.0.1:9/hook', headers, BODY),
  },
  bullmq: { port: bullmq.facts.port, request: postRequest('/hook', json, BODY) },
}

const rates: Record<keyof typeof loads, number[]> = { homeport: [], bullmq: [] }
const p99s: Record<keyof typeof loads, number[]> = { homeport: [], bullmq: [] }
for (let round = 0; round <= ROUNDS; round++) {
  for (const name of ['homeport', 'bullmq'] as const) {
    const result = await runHttpLoad({ ...loads[name], connections: CONNECTIONS, requests: REQUESTS })
    if (round === 0) continue // warming up
    rates[name].push(result.perSecond)
    p99s[name].push(result.latenciesMs[Math.floor(REQUESTS * 0.99)] ?? 0)
  }
}
console.table(
  Object.fromEntries(
    (['homeport', 'bullmq'] as const).map((name) => [
      name,
      {
        'published per second (median)': Math.round(median(rates[name])),
        'p99 ms (median)': Number(median(p99s[name]).toFixed(1)),
        rounds: rates[name].map((rate) => Math.round(rate)).join(' '),
      },
    ]),
  ),
)
console.log(`ratio homeport / bullmq: ${(median(rates.homeport) / median(rates.bullmq)).toFixed(2)} (goal: above 1)`)
await Promise.all([homeport.stop(), bullmq.stop()])
await redis.stop()
