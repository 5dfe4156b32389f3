/**
 * The data plane over REST: GET on 50 kept connections, one command per request and pipelines of 16, at the gateway, at
 * webdis where it is installed, and at a bare `node:http` server over one pipelined engine connection (the floor). The
 * gateway accepts a pipeline as one request (`POST /pipeline`) and as pipelined HTTP requests. webdis supports only the
 * latter.
 *
 *   npm run bench gateway-rest
 *
 * Its settings are those of `gateway.bench.ts`.
 */
import { reserveCores } from './support/cores.js'
import { median } from './support/figures.js'
import type { GatewayFacts } from './support/gateway-server.js'
import { postRequest, runHttpLoad } from './support/http-load.js'
import { startPeer } from './support/peers.js'
import { processUs } from './support/process-time.js'
import { startWebdis } from './support/programs.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const REQUESTS = Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 15_000)
const CONNECTIONS = 50
const PIPELINE = 16

/** One way of sending commands to one server. */
interface Way {
  readonly name: string
  readonly port: number
  readonly pid: number
  readonly request: Buffer
  /** Requests that are sent together, and commands in each. */
  readonly pipeline?: number
  readonly commands?: number
}

interface Figures {
  readonly rates: number[]
  readonly spentUs: number[]
}

async function measure(way: Way, { rates, spentUs }: Figures): Promise<void> {
  const { port, request, pipeline = 1, commands = 1 } = way
  const requests = Math.round(REQUESTS / commands / pipeline) * pipeline
  const before = processUs(way.pid)
  const { perSecond } = await runHttpLoad({ port, connections: CONNECTIONS, requests, request, pipeline })
  spentUs.push((processUs(way.pid) - before) / (requests * commands))
  rates.push(perSecond * commands)
}

async function compare(title: string, ways: readonly Way[]): Promise<void> {
  const turns = ways.map((way) => ({ way, figures: { rates: [], spentUs: [] } as Figures }))
  for (const { way } of turns) await measure(way, { rates: [], spentUs: [] })
  for (let round = 0; round < ROUNDS; round++) {
    const from = round % turns.length
    for (const { way, figures } of [...turns.slice(from), ...turns.slice(0, from)]) await measure(way, figures)
  }
  const own = turns[0]?.figures.rates ?? []
  const rows = turns.map(({ way, figures }) => {
    const ratios = own.map((rate, round) => rate / (figures.rates[round] ?? Number.NaN))
    const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
    const perSecond = Math.round(median(figures.rates))
    const us = +median(figures.spentUs).toFixed(1)
    return [way.name, { 'per second': perSecond, 'first row is': +median(ratios).toFixed(2), 'of rounds': range, us }]
  })
  console.log(title)
  console.table(Object.fromEntries(rows))
}

const cores = reserveCores()
const server = await startPeer<GatewayFacts>('gateway-server.ts', {}, { launcher: cores.launcher })
const { facts } = server
const env = { BENCH_ENGINE_SOCKET: facts.socketPath, BENCH_ENGINE_PASSWORD: facts.enginePassword }
const floor = await startPeer<{ port: number }>('rest-floor.ts', env, { launcher: cores.launcher })
const webdis = await startWebdis(facts, cores.launcher)
const headers = { authorization: `Bearer ${facts.token}`, 'content-type': 'application/json' }
const set = postRequest('/set/bench', headers, 'v'.repeat(64))
await runHttpLoad({ port: facts.restPort, connections: 1, requests: 1, request: set })

const get = postRequest('/', headers, '["GET","bench"]')
const many = postRequest('/pipeline', headers, JSON.stringify(new Array(PIPELINE).fill(['GET', 'bench'])))
const gateway = { name: 'gateway', port: facts.restPort, pid: server.child.pid ?? 0, request: get }
const bare = { name: 'node:http floor', port: floor.facts.port, pid: floor.child.pid ?? 0, request: get }
const webdisGet = Buffer.from('GET /GET/bench HTTP/1.1\r\nHost: x\r\n\r\n')
const peers = [bare, ...(webdis ? [{ name: 'webdis', ...webdis, request: webdisGet }] : [])]

console.log(`REST, GET of 64 bytes on ${CONNECTIONS} connections; the load is one Node process; ${cores.words}`)
await compare('one command per request, commands per second', [gateway, ...peers])
const followed = (way: Way): Way => ({ ...way, name: `${way.name}, ${PIPELINE} requests at once`, pipeline: PIPELINE })
await compare(`pipelines of ${PIPELINE}, commands per second`, [
  { ...gateway, name: 'gateway, /pipeline', request: many, commands: PIPELINE },
  followed(gateway),
  ...peers.map(followed),
])
webdis?.stop()
await floor.stop()
await server.stop()
