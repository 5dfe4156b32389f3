/**
 * How long a client waits for a database that is asleep: from the connection to the reply to its first command,
 * compared with an engine started directly on a copy of the same files until it answers PING. Rounds alternate.
 *
 *   node --import ./scripts/lib/measured.mjs bench/wake.bench.ts [rounds of the empty one = 100] [keys = 100000] [keys = 1000000] ...
 */
import { writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { DEFAULT_PLANS } from '../src/contract/databases/plans.js'
import { probeEngine } from '../src/fleet/index.js'
import {
  cleanup,
  processesMarked,
  type RunningHomeport,
  startHomeport,
  tempDir,
  waitFor,
} from '../test/support/index.js'
import { bareSpawnToPong } from './support/engine-floor.js'
import { percentile } from './support/figures.js'

const [emptyRounds = 100, ...given] = process.argv
  .slice(2)
  .filter((word) => /^\d+$/.test(word))
  .map(Number)
const keyCounts = given.length > 0 ? given : [100_000, 1_000_000]
const ROUNDS_WITH_KEYS = 5
const IDLE_MS = 300
const VALUE_BYTES = 100
const KEYS_AT_A_TIME = 1_000

interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
}

/** Connects, logs in, sends commands and resolves when this many bytes of replies have arrived. */
function talk({ port, password }: Database, commands: string, replyBytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = -'+OK\r\n'.length
    const socket = createConnection(port, '127.0.0.1', () => socket.write(`AUTH ${password}\r\n${commands}`))
    socket.on('data', (chunk) => {
      received += chunk.length
      if (received < replyBytes) return
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the connection was closed')))
  })
}

async function fill(database: Database, keys: number): Promise<void> {
  const value = 'v'.repeat(VALUE_BYTES)
  for (let from = 0; from < keys; from += KEYS_AT_A_TIME) {
    const count = Math.min(KEYS_AT_A_TIME, keys - from)
    const commands = Array.from({ length: count }, (_, i) => `SET key:${from + i} ${value}\r\n`).join('')
    await talk(database, commands, count * '+OK\r\n'.length)
  }
}

async function create(server: RunningHomeport): Promise<Database> {
  const fields = { database_name: 'wake', platform: 'aws', primary_region: 'us-east-1', plan: 'payg' }
  return (await server.api('POST', '/v2/redis/database', fields)).body as Database
}

async function untilAsleep(server: RunningHomeport, { database_id }: Database): Promise<void> {
  const path = `/v2/redis/awake/${database_id}`
  const sleeps = async () => ((await server.api('GET', path)).body as { awake: boolean }).awake === false
  await waitFor(sleeps, { what: 'the database to sleep', deadlineMs: 120_000, everyMs: 20 })
  const directory = join(server.place.dataDir, 'databases', database_id)
  await waitFor(() => processesMarked(directory).length === 0, { what: 'its engine to end', deadlineMs: 30_000 })
}

async function measure(server: RunningHomeport, binary: string, keys: number, rounds: number): Promise<void> {
  const database = await create(server)
  await fill(database, keys)
  const data = join(server.place.dataDir, 'databases', database.database_id, 'us-east-1')
  const [ours, floor]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    await untilAsleep(server, database)
    floor.push(await bareSpawnToPong(binary, data))
    const startedAt = performance.now()
    await talk(database, 'EXISTS nothing\r\n', ':0\r\n'.length)
    ours.push(performance.now() - startedAt)
  }
  const figures = (values: readonly number[]): string =>
    `p50 ${percentile(values, 0.5).toFixed(1).padStart(7)} ms   p99 ${percentile(values, 0.99).toFixed(1).padStart(7)} ms`
  const ratio = percentile(ours, 0.5) / percentile(floor, 0.5)
  console.log(`${keys} keys, ${rounds} times`)
  console.log(`  engine by hand, spawn to PONG    ${figures(floor)}`)
  console.log(`  first reply of a sleeping one    ${figures(ours)}   ${ratio.toFixed(2)} x the engine`)
}

try {
  const { binary, kind, version } = await probeEngine()
  console.log(`engine: ${kind} ${version}; goal: p99 of an empty database below 100 ms`)
  const plansFile = join(tempDir(), 'plans.json')
  writeFileSync(plansFile, JSON.stringify({ payg: { ...DEFAULT_PLANS.payg, db_store_max_idle: IDLE_MS * 1e6 } }))
  const server = await startHomeport({ args: ['--log-level', 'silent', '--plans-file', plansFile] })
  await measure(server, binary, 0, emptyRounds)
  for (const keys of keyCounts) await measure(server, binary, keys, ROUNDS_WITH_KEYS)
} finally {
  await cleanup()
}
