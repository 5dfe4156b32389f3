/**
 * Creating a database, from the request until its port answers a client's PING, compared with the floor: spawning the
 * same engine directly until it answers PONG on a Unix socket. One at a time and eight at a time, on one machine, in
 * alternating rounds.
 *
 *   npm run bench create-database
 */
import { createConnection } from 'node:net'
import { startBareEngine } from '../src/databases/testing/bare-engine.js'
import { probeEngine } from '../src/fleet/index.js'
import { cleanup, type RunningHomeport, startHomeport } from '../test/support/index.js'
import { percentile } from './support/figures.js'

const ROUNDS = 5
const PER_ROUND = 16
const CONCURRENCIES = [1, 8]

const body = { database_name: 'bench', platform: 'aws', primary_region: 'us-east-1' }

interface Made {
  readonly elapsedMs: number
  readonly undo: () => Promise<unknown>
}

/** Runs `count` creations, some at a time, then undoes all of them; returns the time of each. */
async function round(make: () => Promise<Made>, count: number, atATime: number): Promise<number[]> {
  const made: Made[] = []
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) made.push(await make())
  }
  await Promise.all(Array.from({ length: atATime }, worker))
  await Promise.all(made.map(({ undo }) => undo()))
  return made.map(({ elapsedMs }) => elapsedMs)
}

/** Logs in and pings as a client would; resolves when PONG has come. */
function ping(port: number, password: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let replies = ''
    const socket = createConnection(port, '127.0.0.1', () => socket.write(`AUTH ${password}\r\nPING\r\n`))
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      replies += chunk
      if (replies !== '+OK\r\n+PONG\r\n') return
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`the database answered ${JSON.stringify(replies)}`)))
  })
}

async function createDatabase(server: RunningHomeport): Promise<Made> {
  const startedAt = performance.now()
  const answer = await server.api('POST', '/v2/redis/database', body)
  const record = answer.body as { database_id: string; port: number; password: string }
  if (answer.status !== 200) throw new Error(`creation answered ${answer.status} ${JSON.stringify(answer.body)}`)
  await ping(record.port, record.password)
  const elapsedMs = performance.now() - startedAt
  return { elapsedMs, undo: () => server.api('DELETE', `/v2/redis/database/${record.database_id}`) }
}

async function spawnBare(binary: string): Promise<Made> {
  const startedAt = performance.now()
  const engine = await startBareEngine(binary, ['--appendonly', 'yes', '--appendfsync', 'everysec'])
  return { elapsedMs: performance.now() - startedAt, undo: () => engine.kill() }
}

function report(name: string, atATime: number, elapsedMs: readonly number[]): number {
  const [p50, p99] = [percentile(elapsedMs, 0.5), percentile(elapsedMs, 0.99)]
  const figures = `p50 ${p50.toFixed(1).padStart(7)} ms   p99 ${p99.toFixed(1).padStart(7)} ms`
  console.log(`${name.padEnd(34)} ${atATime} at a time   ${figures}   (${elapsedMs.length} times)`)
  return p50
}

try {
  const { binary, kind, version } = await probeEngine()
  console.log(`engine: ${kind} ${version}`)
  const server = await startHomeport({ args: ['--log-level', 'silent'] })
  const makers = { bare: () => spawnBare(binary), ours: () => createDatabase(server) }
  await round(makers.bare, 2, 1)
  await round(makers.ours, 2, 1)
  for (const atATime of CONCURRENCIES) {
    const [bare, ours]: [number[], number[]] = [[], []]
    for (let i = 0; i < ROUNDS; i++) {
      bare.push(...(await round(makers.bare, PER_ROUND, atATime)))
      ours.push(...(await round(makers.ours, PER_ROUND, atATime)))
    }
    const floor = report('bare spawn to PONG', atATime, bare)
    const created = report('create database to PONG over TCP', atATime, ours)
    console.log(`ratio of the medians: ${(created / floor).toFixed(2)} (goal: at most 3)`)
  }
} finally {
  await cleanup()
}
