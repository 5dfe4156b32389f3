/**
 * The data plane compared with the layers below it, alternating on one machine, with every limit set and metering on:
 *
 * - TCP: redis-benchmark (GET and SET) to the gateway, to a bare relay in Node (the floor) and to the same engine
 *   directly, for 1, 50 and 500 clients, pipelines of 1 and 16, values of 64 bytes and 10 KB.
 * - REST: one GET per request on 50 kept connections, to the gateway, to a bare node:http server over one
 *   pipelined engine connection (the floor), and to webdis where it is installed.
 *
 * Besides the rates it prints the processor time per command of the gateway and of the relay, which depends less on
 * other load of the machine.
 *
 * - Large: 600 SET of 1 MiB in one pipeline, and 12 clients that connect at once, log in and send a command, to the
 *   gateway and to the engine directly.
 * - Storm: clients that connect, are refused and connect again, and the effect on other clients.
 *
 *   npm run bench gateway
 *
 * The load has its own core (`support/cores.ts`), every round of TCP has a warm-up, and the order rotates.
 *
 * `HOMEPORT_BENCH_REQUESTS` sets how many requests a round has, `HOMEPORT_BENCH_ROUNDS` the rounds,
 * `HOMEPORT_BENCH_ONLY` (`tcp`, `rest`, `large`, `storm`) leaves the rest out, `HOMEPORT_BENCH_SHAPES` leaves out shapes of TCP
 * other than these (`50/1/64,50/16/64`), `HOMEPORT_BENCH_CORES=shared` lets the load and the servers share all cores, and
 * `HOMEPORT_BENCH_INTERNALS=off` measures the gateway on the public API of Node (`client/node-internals.ts`).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../test/support/index.js'
import { setApart } from './support/cores.js'
import { median } from './support/figures.js'
import type { GatewayFacts } from './support/gateway-server.js'
import { postRequest, runHttpLoad } from './support/http-load.js'
import { connectTimes, largePipeline } from './support/large-load.js'
import { type Peer, startPeer } from './support/peers.js'
import { processUs } from './support/process-time.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 7)
const REQUESTS = Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 40_000)
const REST_REQUESTS = Math.round(REQUESTS / 3)
const LARGE_COMMANDS = 600
const CONNECTING = 12
const STORM_ATTEMPTS = Math.round(REQUESTS / 2)
const GOALS: Readonly<Record<string, number>> = { '50/1/64': 0.9, '500/1/64': 1, '50/16/64': 0.7 }

/** The bare relay receives batches up to this size in one read; it would mix up the pieces of larger ones. */
const RELAYED_BYTES = 16_384

const cores = setApart()

interface Shape {
  readonly clients: number
  readonly pipeline: number
  readonly bytes: number
}

const WANTED = process.env.HOMEPORT_BENCH_SHAPES?.split(',')
const SHAPES = [64, 10_240]
  .flatMap((bytes) => [1, 16].flatMap((pipeline) => [1, 50, 500].map((clients) => ({ clients, pipeline, bytes }))))
  .filter((shape) => WANTED?.includes(nameOf(shape)) ?? true)

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  await once(child, 'close')
  return text
}

/** Requests per round, of GET and of SET each. */
function requestsOf({ clients, pipeline, bytes }: Shape): number {
  const share = clients === 1 && pipeline === 1 ? 1 / 6 : pipeline > 1 && bytes < 1000 ? 4 : 1
  return Math.round(REQUESTS * share)
}

/** Commands per second: the mean of GET and SET. */
async function tcpRate(port: number, password: string, shape: Shape): Promise<number> {
  const { clients, pipeline, bytes } = shape
  const numbers = { '-p': port, '-c': clients, '-P': pipeline, '-d': bytes, '-n': requestsOf(shape), '-r': 10_000 }
  const args = Object.entries(numbers).flatMap(([name, value]) => [name, String(value)])
  const csv = await outputOf('redis-benchmark', ['-h', '127.0.0.1', '-a', password, '-t', 'set,get', '--csv', ...args])
  const rates = [...csv.matchAll(/^"(?:GET|SET)","([\d.]+)"/gm)].map(([, rate]) => Number(rate))
  if (rates.length !== 2) throw new Error(`redis-benchmark said ${csv.slice(0, 200)}`)
  return rates.reduce((sum, rate) => sum + rate, 0) / 2
}

/** A server of the Redis protocol, and the process whose time is measured. */
interface TcpPeer {
  readonly port: number
  readonly password: string
  readonly pid: number
}

interface TcpFigures {
  /** Commands per second of each round. */
  readonly rates: number[]
  /** Processor time per command of each round, microseconds. */
  readonly spentUs: number[]
}

async function tcpRound({ port, password, pid }: TcpPeer, shape: Shape, { rates, spentUs }: TcpFigures): Promise<void> {
  const before = processUs(pid)
  rates.push(await tcpRate(port, password, shape))
  spentUs.push((processUs(pid) - before) / (2 * requestsOf(shape)))
}

/** The ratio of one peer to another in the same round, for each round. */
function ratiosOf(one: TcpFigures, other: TcpFigures): readonly number[] {
  return one.rates.map((rate, round) => rate / (other.rates[round] ?? Number.NaN))
}

function ratioOf(one: TcpFigures, other: TcpFigures): number {
  return +median(ratiosOf(one, other)).toFixed(2)
}

function rangeOf(one: TcpFigures, other: TcpFigures): string {
  const ratios = ratiosOf(one, other)
  return `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
}

async function tcpRow(gateway: TcpPeer, relay: TcpPeer, engine: TcpPeer, shape: Shape): Promise<object> {
  const [own, floor, direct]: [TcpFigures, TcpFigures, TcpFigures] = [noFigures(), noFigures(), noFigures()]
  const relays = shape.pipeline * shape.bytes <= RELAYED_BYTES
  const turns: readonly (readonly [TcpPeer, TcpFigures])[] = [
    [gateway, own],
    ...(relays ? [[relay, floor] as const] : []),
    [engine, direct],
  ]
  // Each is warmed up before the measurement, and the predecessor changes from round to round.
  for (const [peer] of turns) await tcpRound(peer, shape, noFigures())
  for (let round = 0; round < ROUNDS; round++) {
    for (const [peer, figures] of round % 2 === 0 ? turns : turns.toReversed()) await tcpRound(peer, shape, figures)
  }
  return {
    gateway: Math.round(median(own.rates)),
    engine: Math.round(median(direct.rates)),
    ratio: ratioOf(own, direct),
    'of rounds': rangeOf(own, direct),
    goal: GOALS[nameOf(shape)] ?? '',
    'relay ratio': relays ? ratioOf(floor, direct) : '',
    'gateway us': +median(own.spentUs).toFixed(2),
    'relay us': relays ? +median(floor.spentUs).toFixed(2) : '',
  }
}

function noFigures(): TcpFigures {
  return { rates: [], spentUs: [] }
}

function nameOf({ clients, pipeline, bytes }: Shape): string {
  return `${clients}/${pipeline}/${bytes}`
}

async function benchTcp(facts: GatewayFacts, pid: number): Promise<void> {
  const floor = await startPeer<{ port: number }>(
    'tcp-floor.ts',
    { BENCH_ENGINE_SOCKET: facts.socketPath },
    { launcher: cores.launcher },
  )
  const gateway = { port: facts.gatewayPort, password: facts.gatewayPassword, pid }
  const relay = { port: floor.facts.port, password: facts.enginePassword, pid: floor.child.pid ?? 0 }
  // Its processor time is not shown, so any process will do.
  const engine = { port: facts.enginePort, password: facts.enginePassword, pid }
  const rows: Record<string, object> = {}
  for (const shape of SHAPES) rows[nameOf(shape)] = await tcpRow(gateway, relay, engine, shape)
  console.log('TCP, commands per second (clients/pipeline/bytes of a value)')
  console.table(rows)
  await floor.stop()
}

interface RestPeer {
  readonly port: number
  readonly request: Buffer
}

/** A webdis with two threads on the engine; `undefined` if it is not installed. */
async function startWebdis(facts: GatewayFacts): Promise<{ readonly port: number; stop(): void } | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'webdis-'))
  const port = await freePort()
  const file = join(directory, 'webdis.json')
  const settings = {
    http_host: '127.0.0.1',
    http_port: port,
    threads: 2,
    pool_size: 20,
    verbosity: 0,
    daemonize: false,
  }
  const engine = { redis_host: '127.0.0.1', redis_port: facts.enginePort, redis_auth: facts.enginePassword }
  writeFileSync(file, JSON.stringify({ ...settings, ...engine, logfile: join(directory, 'log') }))
  const [program = 'webdis', ...args] = [...cores.launcher, 'webdis', file]
  const child = spawn(program, args, { stdio: 'ignore' })
  const failed = Promise.race([once(child, 'error'), once(child, 'exit')]).then(() => 'missing' as const)
  const stop = (): void => {
    child.kill()
    rmSync(directory, { recursive: true, force: true })
  }
  if ((await Promise.race([failed, listens(port)])) === 'listening') return { port, stop }
  stop()
  console.log('webdis is not installed here (Debian: apt-get install webdis), so it is left out')
  return undefined
}

async function listens(port: number): Promise<'listening' | 'silent'> {
  for (let tries = 0; tries < 100; tries++) {
    const socket = createConnection(port, '127.0.0.1')
    const outcome = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (outcome) return 'listening'
    await pause(50)
  }
  return 'silent'
}

async function benchRest(facts: GatewayFacts): Promise<void> {
  const env = { BENCH_ENGINE_SOCKET: facts.socketPath, BENCH_ENGINE_PASSWORD: facts.enginePassword }
  const floor = await startPeer<{ port: number }>('rest-floor.ts', env, { launcher: cores.launcher })
  const webdis = await startWebdis(facts)
  const headers = { authorization: `Bearer ${facts.token}`, 'content-type': 'application/json' }
  const set = postRequest('/set/bench', headers, 'v'.repeat(64))
  await runHttpLoad({ port: facts.restPort, connections: 1, requests: 1, request: set })
  const get = postRequest('/', headers, '["GET","bench"]')
  const peers: Record<string, RestPeer> = {
    gateway: { port: facts.restPort, request: get },
    'node:http floor': { port: floor.facts.port, request: get },
    ...(webdis && {
      webdis: { port: webdis.port, request: Buffer.from('GET /GET/bench HTTP/1.1\r\nHost: x\r\n\r\n') },
    }),
  }
  const rates: Record<string, number[]> = {}
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, peer] of Object.entries(peers)) {
      const { perSecond } = await runHttpLoad({ ...peer, connections: 50, requests: REST_REQUESTS })
      if (round > 0) rates[name] = [...(rates[name] ?? []), perSecond]
    }
  }
  const own = median(rates.gateway ?? [])
  const rows = Object.entries(rates).map(([name, all]) => [
    name,
    { 'per second': Math.round(median(all)), 'gateway is': +(own / median(all)).toFixed(2) },
  ])
  console.log('REST, single commands on 50 connections (goal: at least webdis; the load itself is one Node process)')
  console.table(Object.fromEntries(rows))
  webdis?.stop()
  await floor.stop()
}

/** Clients that connect, are refused and connect again, and the effect on a client that is logged in. */
async function benchStorm({ gatewayPort, enginePort, restPort, token }: GatewayFacts, pid: number): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const request = postRequest('/', headers, '["PING"]')
  const load = { port: restPort, connections: 5, requests: REST_REQUESTS / 10, request }
  const strangers = await startPeer<string>('storm-process.ts')
  const quiet = await runHttpLoad(load)
  const before = processUs(pid)
  await stormFrom(strangers, gatewayPort)
  const attemptUs = (processUs(pid) - before) / STORM_ATTEMPTS
  const [gateway, during] = await Promise.all([stormFrom(strangers, gatewayPort), runHttpLoad(load)])
  const engine = await stormFrom(strangers, enginePort)
  await strangers.stop()
  console.log('connection attempts per second, without a login (the attempts come from one Node process)')
  console.table({
    gateway: Math.round(gateway),
    'engine itself': Math.round(engine),
    'gateway us an attempt': Math.round(attemptUs),
  })
  console.log(
    `others meanwhile: ${Math.round(during.perSecond)} REST requests a second, ${Math.round(quiet.perSecond)} before`,
  )
}

/** @returns attempts per second. */
async function stormFrom({ child }: Peer<string>, port: number): Promise<number> {
  child.send({ port, attempts: STORM_ATTEMPTS, atOnce: 200 })
  const [rate] = await once(child, 'message')
  return Number(rate)
}

/** A pipeline of large values, and clients that connect at once. */
async function benchLarge(facts: GatewayFacts): Promise<void> {
  const gateway = { port: facts.gatewayPort, password: facts.gatewayPassword }
  const engine = { port: facts.enginePort, password: facts.enginePassword }
  const [pipelines, connects]: Record<'gateway' | 'engine', number[]>[] = [noTimes(), noTimes()]
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, target] of [['gateway', gateway] as const, ['engine', engine] as const]) {
      const tookMs = await largePipeline(target, LARGE_COMMANDS)
      const times = await connectTimes(target, CONNECTING)
      if (round === 0) continue
      pipelines?.[name].push(tookMs)
      connects?.[name].push(...times)
    }
  }
  const rowOf = (times: Record<'gateway' | 'engine', number[]> = noTimes()): object => ({
    gateway: +median(times.gateway).toFixed(1),
    engine: +median(times.engine).toFixed(1),
    'slowest at the gateway': +Math.max(...times.gateway).toFixed(1),
    'slowest at the engine': +Math.max(...times.engine).toFixed(1),
  })
  console.log('large values and new connections, milliseconds')
  console.table({
    [`${LARGE_COMMANDS} SET of 1 MiB in one pipeline`]: rowOf(pipelines),
    [`a client of ${CONNECTING} that connect at once`]: rowOf(connects),
  })
}

const noTimes = (): Record<'gateway' | 'engine', number[]> => ({ gateway: [], engine: [] })

const server = await startPeer<GatewayFacts>('gateway-server.ts', {}, { launcher: cores.launcher })
console.log(cores.words)
const pid = server.child.pid ?? 0
const only = process.env.HOMEPORT_BENCH_ONLY
const runs = (part: string): boolean => only === undefined || only === part
if (runs('tcp')) await benchTcp(server.facts, pid)
if (runs('rest')) await benchRest(server.facts)
if (runs('large')) await benchLarge(server.facts)
if (runs('storm')) await benchStorm(server.facts, pid)
await server.stop()
