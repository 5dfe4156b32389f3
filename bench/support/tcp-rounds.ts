import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Cores } from './cores.js'
import { median } from './figures.js'
import type { GatewayFacts } from './gateway-server.js'
import { startPeer } from './peers.js'
import { processUs } from './process-time.js'
import { startHaproxy, startTwemproxy } from './programs.js'

/** A load of redis-benchmark. */
export interface Shape {
  readonly clients: number
  readonly pipeline: number
  /** Length of a value. */
  readonly bytes: number
}

/** A server of the Redis protocol, and the process whose time is measured. */
export interface TcpPeer {
  readonly name: string
  readonly port: number
  readonly password: string
  readonly pid: number
  /** Whether it can take this load. */
  readonly takes: (shape: Shape) => boolean
}

/** How much is measured. */
export interface Amount {
  readonly rounds: number
  /** Requests of GET, and of SET, in a round of a shape without a pipeline and with short values. */
  readonly requests: number
}

/** The bare relay reads batches up to this size at once. It would mix up the pieces of larger batches. */
const RELAYED_BYTES = 16_384

/**
 * Starts what the gateway is compared with: the bare relay, and haproxy and twemproxy where they are installed. The
 * gateway is the first, the engine itself the last.
 */
export async function startTcpPeers(
  facts: GatewayFacts,
  gatewayPid: number,
  { launcher }: Cores,
): Promise<{ readonly peers: readonly TcpPeer[]; stop(): Promise<void> }> {
  const floor = await startPeer<{ port: number }>(
    'tcp-floor.ts',
    { BENCH_ENGINE_SOCKET: facts.socketPath },
    { launcher },
  )
  const [haproxy, twemproxy] = [await startHaproxy(facts, launcher), await startTwemproxy(facts, launcher)]
  const takes = (): boolean => true
  const relayed = ({ pipeline, bytes }: Shape): boolean => pipeline * bytes <= RELAYED_BYTES
  const password = facts.enginePassword
  const relay = { name: 'relay', port: floor.facts.port, pid: floor.child.pid ?? 0, password, takes: relayed }
  const peers = [
    { name: 'gateway', port: facts.gatewayPort, password: facts.gatewayPassword, pid: gatewayPid, takes },
    relay,
    ...(haproxy ? [{ name: 'haproxy', ...haproxy, password, takes }] : []),
    ...(twemproxy ? [{ name: 'twemproxy', ...twemproxy, password, takes }] : []),
    { name: 'engine', port: facts.enginePort, password, pid: facts.enginePid, takes },
  ]
  const stop = async (): Promise<void> => {
    haproxy?.stop()
    twemproxy?.stop()
    await floor.stop()
  }
  return { peers, stop }
}

/** `50/16/64`: clients, pipeline, bytes of a value. */
export function nameOf({ clients, pipeline, bytes }: Shape): string {
  return `${clients}/${pipeline}/${bytes}`
}

/** The shapes with these names. `HOMEPORT_BENCH_SHAPES` leaves out others. */
export function shapesOf(names: readonly string[]): readonly Shape[] {
  const wanted = process.env.HOMEPORT_BENCH_SHAPES?.split(',')
  return names
    .filter((name) => wanted?.includes(name) ?? true)
    .map((name) => name.split('/').map(Number))
    .map(([clients = 1, pipeline = 1, bytes = 64]) => ({ clients, pipeline, bytes }))
}

interface Figures {
  /** Commands per second of each round: the mean of GET and SET. */
  readonly rates: number[]
  /** Processor time per command of each round, microseconds. */
  readonly spentUs: number[]
}

/** Measures one shape with every peer. Each is warmed up, and the order rotates from round to round. */
export async function compareShape(all: readonly TcpPeer[], shape: Shape, amount: Amount): Promise<object> {
  const peers = all.filter(({ takes }) => takes(shape))
  const turns = peers.map((peer) => ({ peer, figures: noFigures() }))
  for (const { peer } of turns) await measure(peer, shape, amount, noFigures())
  for (let round = 0; round < amount.rounds; round++) {
    const from = round % turns.length
    for (const { peer, figures } of [...turns.slice(from), ...turns.slice(0, from)])
      await measure(peer, shape, amount, figures)
  }
  return rowOf(turns)
}

async function measure(peer: TcpPeer, shape: Shape, amount: Amount, { rates, spentUs }: Figures): Promise<void> {
  const requests = requestsOf(shape, amount.requests)
  const before = processUs(peer.pid)
  rates.push(await tcpRate(peer, shape, requests))
  spentUs.push((processUs(peer.pid) - before) / (2 * requests))
}

function requestsOf({ clients, pipeline, bytes }: Shape, requests: number): number {
  if (bytes > 100_000) return Math.round(requests / 100)
  const share = clients === 1 && pipeline === 1 ? 1 / 6 : pipeline > 1 && bytes < 1000 ? 4 : 1
  return Math.round(requests * share)
}

async function tcpRate(
  { name, port, password }: TcpPeer,
  { clients, pipeline, bytes }: Shape,
  requests: number,
): Promise<number> {
  const keys = bytes > 100_000 ? 100 : 10_000
  const numbers = { '-p': port, '-c': clients, '-P': pipeline, '-d': bytes, '-n': requests, '-r': keys }
  const args = Object.entries(numbers).flatMap(([option, value]) => [option, String(value)])
  const csv = await outputOf('redis-benchmark', ['-h', '127.0.0.1', '-a', password, '-t', 'set,get', '--csv', ...args])
  const rates = [...csv.matchAll(/^"(?:GET|SET)","([\d.]+)"/gm)].map(([, rate]) => Number(rate))
  if (rates.length !== 2) throw new Error(`redis-benchmark said of ${name}: ${csv.slice(0, 200)}`)
  return rates.reduce((sum, rate) => sum + rate, 0) / 2
}

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  await once(child, 'close')
  return text
}

/** One row: the gateway and its ratio to the engine, then the ratio to the engine and the processor time of each. */
function rowOf(turns: readonly { readonly peer: TcpPeer; readonly figures: Figures }[]): object {
  const own = turns[0]?.figures ?? noFigures()
  const engine = turns.at(-1)?.figures ?? noFigures()
  const ratios = ratiosOf(own, engine)
  const others = turns
    .slice(1, -1)
    .map(({ peer, figures }) => [`${peer.name} ratio`, middle(ratiosOf(figures, engine))])
  const spent = turns.map(({ peer, figures }) => [`${peer.name} us`, middle(figures.spentUs)])
  return {
    gateway: Math.round(median(own.rates)),
    engine: Math.round(median(engine.rates)),
    ratio: middle(ratios),
    'of rounds': `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
    ...Object.fromEntries([...others, ...spent]),
  }
}

/** The ratio of one peer to another in the same round, for each round. */
function ratiosOf(one: Figures, other: Figures): readonly number[] {
  return one.rates.map((rate, round) => rate / (other.rates[round] ?? Number.NaN))
}

function middle(numbers: readonly number[]): number {
  return +median(numbers).toFixed(2)
}

function noFigures(): Figures {
  return { rates: [], spentUs: [] }
}
