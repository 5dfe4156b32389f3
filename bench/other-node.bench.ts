/**
 * The cost of a command through a node that is not the home of its database, compared with the same command at the home:
 * latency of one client, and throughput of many clients with pipelines, through the port of the database. Both nodes run on
 * this machine, each in a process of its own, in alternating rounds.
 *
 * Goal: latency at most one network hop more; throughput at least 0.45 of that at the home.
 *
 *   npm run bench other-node
 *
 * `HOMEPORT_BENCH_ROUNDS` sets the number of rounds, default 5.
 */
import { connect, type Socket } from 'node:net'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { cleanup } from '../test/support/index.js'
import { median, percentile } from './support/figures.js'
import { runLoad } from './support/load.js'
import { type BenchNode, startNodes } from './support/nodes.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 5)
const CALLS = 5_000
const CLIENTS = 20
const PIPELINE = 50
const BATCHES = 400
const REGIONS = ['eu-west-1', 'us-east-1'] as const

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

const ms = (value: number): string => `${value.toFixed(3)} ms`

const postgres = await startPostgresServer()
try {
  const [home, near] = (await startNodes(`${postgres.url}/postgres`, REGIONS)) as [BenchNode, BenchNode]
  const hosts = { home: home.host, near: near.host }
  const body = { database_name: 'bench', platform: 'aws', primary_region: REGIONS[0], plan: 'payg' }
  const answer = await near.homeport.api('POST', '/v2/redis/database', body)
  if (answer.status !== 200) throw new Error(`creation answered ${answer.status} ${JSON.stringify(answer.body)}`)
  const database = answer.body as Database
  const delays = { home: [] as number[], near: [] as number[] }
  const rates = { home: [] as number[], near: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of round % 2 === 0 ? (['home', 'near'] as const) : (['near', 'home'] as const)) {
      delays[name].push(...(await latencies(hosts[name], database)))
      rates[name].push(await throughput(hosts[name], database))
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
