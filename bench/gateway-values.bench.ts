/**
 * The data plane over TCP with long values, compared as in `gateway.bench.ts`: values of 10 KB without and with a pipeline,
 * values of 1 MB with 8 clients, and 600 SET of 1 MiB in one pipeline.
 *
 *   npm run bench gateway-values
 *
 * Its settings are those of `gateway.bench.ts`.
 */
import { reserveCores } from './support/cores.js'
import { median } from './support/figures.js'
import type { GatewayFacts } from './support/gateway-server.js'
import { largePipeline } from './support/large-load.js'
import { startPeer } from './support/peers.js'
import { compareShape, nameOf, shapesOf, startTcpPeers, type TcpPeer } from './support/tcp-rounds.js'

const AMOUNT = {
  rounds: Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5),
  requests: Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 20_000),
}
const SHAPES = shapesOf(['50/1/10240', '1/16/10240', '50/16/10240', '500/16/10240', '8/1/1000000'])
const LARGE_COMMANDS = 600

/** A pipeline of large values, milliseconds. The relay cannot take it, and twemproxy gathers each command. */
async function benchPipeline(peers: readonly TcpPeer[]): Promise<void> {
  const times = new Map(peers.filter(({ name }) => name !== 'relay').map((peer) => [peer, [] as number[]]))
  for (let round = 0; round <= AMOUNT.rounds; round++)
    for (const [peer, list] of times) {
      const tookMs = await largePipeline(peer, LARGE_COMMANDS)
      if (round > 0) list.push(tookMs)
    }
  const rows = [...times].map(([{ name }, list]) => [
    name,
    {
      median: Math.round(median(list)),
      fastest: Math.round(Math.min(...list)),
      slowest: Math.round(Math.max(...list)),
    },
  ])
  console.log(`${LARGE_COMMANDS} SET of 1 MiB in one pipeline, milliseconds`)
  console.table(Object.fromEntries(rows))
}

const cores = reserveCores()
const server = await startPeer<GatewayFacts>('gateway-server.ts', {}, { launcher: cores.launcher })
const others = await startTcpPeers(server.facts, server.child.pid ?? 0, cores)
const rows: Record<string, object> = {}
for (const shape of SHAPES) rows[nameOf(shape)] = await compareShape(others.peers, shape, AMOUNT)
console.log(`long values over TCP, commands per second (clients/pipeline/bytes of a value); ${cores.words}`)
console.table(rows)
await benchPipeline(others.peers)
await others.stop()
await server.stop()
