/**
 * The data plane over TCP with small values, compared with the layers below it and with other proxies, with every limit
 * set and metering on: redis-benchmark (GET and SET of 64 bytes, for 1, 50 and 500 clients, pipelines of 1 and 16) to the
 * gateway, to a bare relay in Node (the floor), to haproxy and twemproxy where they are installed, and to the same engine
 * directly. Besides the rates, it prints the processor time per command of each, which depends less on other load of the
 * machine.
 *
 *   npm run bench gateway            with gateway-values, gateway-rest and gateway-neighbours
 *   npm run bench gateway.bench      this one alone
 *
 * The load has its own core (`support/cores.ts`), every shape has a warm-up, and the order rotates.
 *
 * `HOMEPORT_BENCH_REQUESTS` sets how many requests a round has, `HOMEPORT_BENCH_ROUNDS` the rounds,
 * `HOMEPORT_BENCH_SHAPES` leaves out other shapes (`50/1/64,50/16/64`), `HOMEPORT_BENCH_CORES=shared` lets the load and the
 * servers share all cores, and `HOMEPORT_BENCH_INTERNALS=off` measures the gateway on the public API of Node
 * (`base/node-internals.ts`). The same holds for the other benchmarks of the gateway.
 */
import { reserveCores } from './support/cores.js'
import type { GatewayFacts } from './support/gateway-server.js'
import { startPeer } from './support/peers.js'
import { compareShape, nameOf, shapesOf, startTcpPeers } from './support/tcp-rounds.js'

const AMOUNT = {
  rounds: Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5),
  requests: Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 40_000),
}
const SHAPES = shapesOf(['1/1/64', '50/1/64', '500/1/64', '1/16/64', '50/16/64', '500/16/64'])

const cores = reserveCores()
const server = await startPeer<GatewayFacts>('gateway-server.ts', {}, { launcher: cores.launcher })
const others = await startTcpPeers(server.facts, server.child.pid ?? 0, cores)
const rows: Record<string, object> = {}
for (const shape of SHAPES) rows[nameOf(shape)] = await compareShape(others.peers, shape, AMOUNT)
console.log(`TCP, commands per second (clients/pipeline/bytes of a value); ${cores.words}; ratios are to the engine`)
console.table(rows)
await others.stop()
await server.stop()
