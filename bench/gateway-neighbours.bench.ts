/**
 * How clients of the data plane affect each other, at the gateway and at the same engine directly:
 *
 * - 12 and 50 clients that connect at once, log in and send a command.
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
import { setApart } from './support/cores.js'
import { median, percentile } from './support/figures.js'
import type { GatewayFacts } from './support/gateway-server.js'
import { connectTimes, type Target } from './support/large-load.js'
import { fill, type NeighbourKind, type Service, serve } from './support/neighbour.js'
import { type Peer, startPeer } from './support/peers.js'
import { processUs } from './support/process-time.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const SECONDS = Number(process.env.HOMEPORT_BENCH_SECONDS ?? 2)
const STORM_ATTEMPTS = Math.round(Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 40_000) / 2)
const CONNECTING = [12, 50]
const CLIENTS = 10
const KEYS = 200_000
const KINDS: readonly NeighbourKind[] = ['values of 100 MB', 'scans', 'a storm of connections']

type Servers = Readonly<Record<'gateway' | 'engine', Target>>

/** The time of one client from connecting to its first reply. */
async function benchConnects(servers: Servers): Promise<void> {
  const rows: Record<string, object> = {}
  for (const connections of CONNECTING) {
    const [own, direct]: [number[], number[]] = [[], []]
    for (let round = 0; round <= 4 * ROUNDS; round++) {
      const [ours, theirs] = [
        await connectTimes(servers.gateway, connections),
        await connectTimes(servers.engine, connections),
      ]
      if (round === 0) continue
      own.push(...ours)
      direct.push(...theirs)
    }
    rows[`one of ${connections}`] = {
      gateway: +median(own).toFixed(2),
      engine: +median(direct).toFixed(2),
      ratio: +(median(own) / median(direct)).toFixed(2),
      'slowest at the gateway': +Math.max(...own).toFixed(1),
      'slowest at the engine': +Math.max(...direct).toFixed(1),
    }
  }
  console.log('clients that connect at once, log in and send a command, milliseconds')
  console.table(rows)
}

/** Small commands, alone and beside each kind of neighbour. Their ratios are to the service without one. */
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

/** Attempts without a login per second. */
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

const cores = setApart()
console.log(cores.words)
const server = await startPeer<GatewayFacts>('gateway-server.ts', {}, { launcher: cores.launcher })
const { facts } = server
const servers = {
  gateway: { port: facts.gatewayPort, password: facts.gatewayPassword },
  engine: { port: facts.enginePort, password: facts.enginePassword },
}
const neighbour = await startPeer<string>('neighbour-process.ts')
await fill(servers.engine, KEYS)
await benchConnects(servers)
await benchNeighbours(servers, neighbour)
await benchStorm(servers, server.child.pid ?? 0)
await neighbour.stop()
await server.stop()
