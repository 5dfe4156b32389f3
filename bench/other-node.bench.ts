/**
 * What a command costs through a node that is not the home of its database, compared with the same command at the home:
 * latency of one client, and throughput of many with pipelines, through the port of the database. Both nodes run on this
 * machine, each in a process of its own, in alternating rounds.
 *
 * Goal: latency at most one network hop more; throughput at least 0.45 of that at the home.
 *
 *   npm run bench other-node
 *
 * `HOMEPORT_BENCH_ROUNDS` sets the number of rounds, default 5.
 */
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { DEFAULT_PLANS, NO_LIMIT } from '../src/contract/databases/plans.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { cleanup, freePort, type RunningHomeport, startHomeport, tempDir, waitFor } from '../test/support/index.js'
import { median, percentile } from './support/figures.js'
import { runLoad } from './support/load.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const CALLS = 5_000
const CLIENTS = 20
const PIPELINE = 50
const BATCHES = 400
/** The port of a database can be bound once for each address. */
const NODES = {
  near: { host: '127.0.0.1', region: 'us-east-1' },
  home: { host: '127.0.0.2', region: 'eu-west-1' },
} as const

const GET = '*2\r\n$3\r\nGET\r\n$1\r\nk\r\n'
const REPLY_BYTES = '$-1\r\n'.length

interface Database {
  readonly port: number
  readonly password: string
}

/** A client that sends batches of GET, one batch at a time. */
class GetClient {
  readonly #socket: Socket
  #left = 0
  #done: () => void = () => undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#left -= chunk.length
      if (this.#left === 0) this.#done()
    })
  }

  static async open(host: string, { port, password }: Database): Promise<GetClient> {
    const socket = connect({ host, port, noDelay: true })
    const client = new GetClient(socket)
    await client.#send(`AUTH ${password}\r\n`, '+OK\r\n'.length)
    return client
  }

  get(count: number): Promise<void> {
    return this.#send(GET.repeat(count), REPLY_BYTES * count)
  }

  close(): void {
    this.#socket.destroy()
  }

  #send(text: string, answerBytes: number): Promise<void> {
    this.#left = answerBytes
    return new Promise((resolve) => {
      this.#done = resolve
      this.#socket.write(text)
    })
  }
}

async function latencies(host: string, database: Database): Promise<readonly number[]> {
  const client = await GetClient.open(host, database)
  const { latenciesMs } = await runLoad(CALLS, 1, () => client.get(1))
  client.close()
  return latenciesMs
}

/** Commands a second. */
async function throughput(host: string, database: Database): Promise<number> {
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => GetClient.open(host, database)))
  const startedAt = performance.now()
  await Promise.all(
    clients.map(async (client) => {
      for (let batch = 0; batch < BATCHES; batch++) await client.get(PIPELINE)
    }),
  )
  const elapsedMs = performance.now() - startedAt
  for (const client of clients) client.close()
  return (CLIENTS * BATCHES * PIPELINE * 1_000) / elapsedMs
}

async function startNode(name: keyof typeof NODES, store: string, first?: RunningHomeport): Promise<RunningHomeport> {
  const { host, region } = NODES[name]
  const peer = ['--advertise', '127.0.0.1', '--peer-port', String(await freePort())]
  return startHomeport({
    host,
    args: [
      '--store',
      store,
      '--node',
      name,
      '--region',
      region,
      ...peer,
      '--log-level',
      'silent',
      '--plans-file',
      plansFile,
    ],
    ...(first && { credentials: first.credentials }),
  })
}

const ms = (value: number): string => `${value.toFixed(3)} ms`

const plansFile = join(tempDir(), 'plans.json')
writeFileSync(plansFile, JSON.stringify({ payg: { ...DEFAULT_PLANS.payg, db_max_commands_per_second: NO_LIMIT } }))
const postgres = await startPostgresServer()
try {
  const store = `${postgres.url}/postgres`
  const home = await startNode('home', store)
  const near = await startNode('near', store, home)
  const knows = async () =>
    ((await near.api('GET', '/v2/nodes')).body as object[]).every((one) => 'engine_memory' in one)
  await waitFor(knows, { what: 'the nodes to know each other' })
  const body = { database_name: 'bench', platform: 'aws', primary_region: NODES.home.region }
  const answer = await near.api('POST', '/v2/redis/database', body)
  if (answer.status !== 200) throw new Error(`creation answered ${answer.status} ${JSON.stringify(answer.body)}`)
  const database = answer.body as Database
  const delays = { home: [] as number[], near: [] as number[] }
  const rates = { home: [] as number[], near: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of round % 2 === 0 ? (['home', 'near'] as const) : (['near', 'home'] as const)) {
      delays[name].push(...(await latencies(NODES[name].host, database)))
      rates[name].push(await throughput(NODES[name].host, database))
    }
  }
  for (const name of ['home', 'near'] as const) {
    const [p50, p99] = [percentile(delays[name], 0.5), percentile(delays[name], 0.99)]
    const rate = Math.round(median(rates[name])).toLocaleString('en-US')
    const where = name === 'home' ? 'at the home' : 'at the other node'
    console.log(`${where.padEnd(18)} p50 ${ms(p50)}   p99 ${ms(p99)}   ${rate} commands/s`)
  }
  const more = median(delays.near) - median(delays.home)
  console.log(
    `one hop more: ${ms(more)} (p50); throughput ${(median(rates.near) / median(rates.home)).toFixed(2)} of that at the home`,
  )
} finally {
  await cleanup()
  await postgres.stop()
}
