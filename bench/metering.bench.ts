/**
 * The cost of limits and counters: the processor time of the gateway per command with every limit set, and the share of
 * it for checking limits, counting and measuring. Goal: less than 3 %.
 *
 *   npm run bench metering
 *
 * `HOMEPORT_BENCH_REQUESTS` sets how many requests a round has.
 *
 * The total is the processor time of the gateway process under redis-benchmark (Linux only); the share is measured by
 * calling the same functions in a loop. So neither depends on other load of the machine.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { systemClock } from '../src/base/index.js'
import { findCommandByName } from '../src/gateway/commands/command-table.js'
import { Guards } from '../src/gateway/limits/guards.js'
import { LatencySample } from '../src/gateway/limits/latency-sample.js'
import { encodeCommand } from '../src/gateway/resp/encode.js'
import { median } from './support/figures.js'
import { GATEWAY_LIMITS } from './support/gateway-limits.js'
import type { GatewayFacts } from './support/gateway-server.js'
import { startPeer } from './support/peers.js'
import { processUs } from './support/process-time.js'

const REQUESTS = Number(process.env.HOMEPORT_BENCH_REQUESTS ?? 300_000)
const ROUNDS = 5
const CALLS = 4_000_000

/** Processor time of the gateway per command, microseconds. */
async function wholeUs(facts: GatewayFacts, pid: number, pipeline: number): Promise<number> {
  const requests = pipeline === 1 ? REQUESTS / 4 : REQUESTS
  const numbers = ['-p', `${facts.gatewayPort}`, '-c', '50', '-P', `${pipeline}`, '-n', `${requests}`, '-r', '10000']
  const spent: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const before = processUs(pid)
    const args = ['-h', '127.0.0.1', '-a', facts.gatewayPassword, '-t', 'set,get', '-d', '64', '-q', ...numbers]
    await once(spawn('redis-benchmark', args, { stdio: 'ignore' }), 'close')
    if (round > 0) spent.push((processUs(pid) - before) / (2 * requests))
  }
  return median(spent)
}

/** The time of one call, microseconds. */
function callUs(call: () => void): number {
  const spent = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    for (let i = 0; i < CALLS; i++) call()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / CALLS
  })
  return median(spent)
}

/** The cost of limits and counters per command, and per group of commands that are sent together. */
function partsUs(): { readonly command: number; readonly batch: number } {
  const guard = new Guards({
    clock: systemClock,
    directory: { find: () => undefined },
    lanes: () => {
      throw new Error('no engine is asked here')
    },
  }).of({ databaseId: 'bench', port: 1, tls: false, ...GATEWAY_LIMITS })
  const latency = new LatencySample(guard.meter)
  const command = findCommandByName('SET')
  if (!command?.allowed) throw new Error('SET is not served')
  const frame = encodeCommand(['SET', 'key:000000001234', 'x'.repeat(64)])
  let passed = 0
  const perCommand = callUs(() => {
    if (guard.rate.take() && guard.isOpen && frame.length < 32_768) {
      guard.count(command, 1)
      passed++
    }
  })
  const perBatch = callUs(() => {
    guard.touch()
    latency.begin(++passed, true)
    latency.answered(passed)
  })
  return { command: perCommand, batch: perBatch }
}

const server = await startPeer<GatewayFacts>('gateway-server.ts')
const parts = partsUs()
const rows: Record<string, object> = {}
for (const pipeline of [1, 16]) {
  const whole = await wholeUs(server.facts, server.child.pid ?? 0, pipeline)
  const metering = parts.command + parts.batch / pipeline
  rows[`pipeline of ${pipeline}`] = {
    'us a command': +whole.toFixed(2),
    'us for limits and counters': +metering.toFixed(3),
    share: `${((100 * metering) / whole).toFixed(1)} %`,
    goal: '< 3 %',
  }
}
console.table(rows)
await server.stop()
