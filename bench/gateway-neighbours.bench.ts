/**
 * How clients of the data plane affect each other, at the gateway and at the same engine directly:
 *
 * - 12 and 50 clients that connect at once, log in and send a command; also at the bare relay and at the other proxies.
 * - 10 clients of small commands, alone and while a neighbour moves values of 100 MB, scans all keys, or connects again
 *   and again without a login.
 * - The rate of such connections.
 *
 *   npm run bench gateway-neighbours
 *
 * `HOMEPORT_BENCH_SECONDS` sets how long small commands are measured at a time; the other settings are those of
 * `gateway.bench.ts`.
 */
import { once } from 'node:events'
import { reserveCores } from './support/cores.js'
import { median, percentile } from './support/figures.js'
import type { GatewayFacts } from './support/gateway-server.js'
import { connectTimes, type Target } from './support/large-load.js'
import { fill, type NeighbourKind, type Service, serve } from './support/neighbour.js'
import { type Peer, startPeer } from './support/peers.js'
import { processUs } from './support/process-time.js'
import { startTcpPeers, type TcpPeer } from './support/tcp-rounds.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const SECONDS = Number(process.env.HOMEPORT_BENCH_SECONDS ?? 2)
const STORM_ATTEMPTS = Math.round(Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 40_000) / 2)
const CONNECTING = [12, 50]
const CONNECT_ROUNDS = 20 * ROUNDS
const CLIENTS = 10
const KEYS = 200_000
const KINDS: readonly NeighbourKind[] = ['values of 100 MB', 'scans', 'a storm of connections']

type Servers = Readonly<Record<'gateway' | 'engine', Target>>

/** The time of one client from connecting to its first reply, and the processor time of a connection, of each peer. */
async function benchConnects(peers: readonly TcpPeer[]): Promise<void> {
  const rows: Record<string, object> = {}
  for (const connections of CONNECTING) {
    const results = peers.map((peer) => ({ peer, times: [] as number[], processorUs: 0 }))
    for (let round = 0; round <= CONNECT_ROUNDS; round++)
      for (const result of results) {
        const before = processUs(result.peer.pid)
        const times = await connectTimes(result.peer, connections)
        if (round === 0) continue
        result.times.push(...times)
        result.processorUs += processUs(result.peer.pid) - before
      }
    const direct = median(results.at(-1)?.times ?? [])
    for (const { peer, times, processorUs } of results)
      rows[`one of ${connections}, ${peer.name}`] = {
        ms: +median(times).toFixed(2),
        'to the engine': +(median(times) / direct).toFixed(2),
        slowest: +Math.max(...times).toFixed(1),
        'us a connection': Math.round(processorUs / times.length),
      }
  }
  console.log('clients that connect at once, log in and send a command')
  console.table(rows)
}

/** Small commands, alone and beside each kind of neighbour. The ratios compare with the service without a neighbour. */
async function benchNeighbours(servers: Servers, neighbour: Peer<string>): Promise<void> {
  const rows: Record<string, object> = {}
  for (const kind of KINDS)
    for (const [name, target] of Object.entries(servers)) {
      const quiet: Service[] = []
      const disturbed: Service[] = []
      for (let round = 0; round < ROUNDS; round++) {
        quiet.push(await serve(target, CLIENTS, 1000 * SECONDS))
        disturbed.push(await beside(neighbour, kind, target))
      }
      rows[`${kind}, ${name}`] = comparison(quiet, disturbed)
    }
  console.log(
    `${CLIENTS} clients of small commands beside a neighbour; p99 in milliseconds, medians of ${ROUNDS} rounds`,
  )
  console.table(rows)
}

async function beside({ child }: Peer<string>, kind: NeighbourKind, target: Target): Promise<Service> {
  child.send({ kind, ...target })
  const service = await serve(target, CLIENTS, 1000 * SECONDS)
  const ended = once(child, 'message')
  child.send('stop')
  await ended
  return service
}

function comparison(quiet: readonly Service[], disturbed: readonly Service[]): object {
  const p99Of = ({ latenciesMs }: Service): number => percentile(latenciesMs, 0.99)
  const [alone, beside] = [median(quiet.map(p99Of)), median(disturbed.map(p99Of))]
  const [before, during] = [median(quiet.map(rateOf)), median(disturbed.map(rateOf))]
  return {
    'p99 alone': +alone.toFixed(2),
    'p99 beside': +beside.toFixed(2),
    'p99 ratio': +(beside / alone).toFixed(1),
    'per second alone': Math.round(before),
    'per second beside': Math.round(during),
    'rate left': `${Math.round((100 * during) / before)} %`,
  }
}

const rateOf = ({ perSecond }: Service): number => perSecond

/** Connection attempts without a login, per second. */
async function benchStorm({ gateway, engine }: Servers, pid: number): Promise<void> {
  const strangers = await startPeer<string>('storm-process.ts')
  const before = processUs(pid)
  const own = await stormFrom(strangers, gateway.port)
  const attemptUs = (processUs(pid) - before) / STORM_ATTEMPTS
  const direct = await stormFrom(strangers, engine.port)
  await strangers.stop()
  console.log('connection attempts per second, without a login (the attempts come from one Node process)')
  console.table({
    gateway: Math.round(own),
    'engine itself': Math.round(direct),
    'gateway us an attempt': Math.round(attemptUs),
  })
}

/** @returns attempts per second. */
async function stormFrom({ child }: Peer<string>, port: number): Promise<number> {
  child.send({ port, attempts: STORM_ATTEMPTS, atOnce: 200 })
  const [rate] = await once(child, 'message')
  return Number(rate)
}

const cores = reserveCores()
console.log(cores.words)
const server = await startPeer<GatewayFacts>('gateway-server.ts', {}, { launcher: cores.launcher })
const { facts } = server
const servers = {
  gateway: { port: facts.gatewayPort, password: facts.gatewayPassword },
  engine: { port: facts.enginePort, password: facts.enginePassword },
}
const neighbour = await startPeer<string>('neighbour-process.ts')
await fill(servers.engine, KEYS)
const proxies = await startTcpPeers(facts, server.child.pid ?? 0, cores)
await benchConnects(proxies.peers)
await proxies.stop()
await benchNeighbours(servers, neighbour)
await benchStorm(servers, server.child.pid ?? 0)
await neighbour.stop()
await server.stop()
