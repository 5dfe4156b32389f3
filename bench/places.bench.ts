/**
 * Databases on three nodes of three regions, all on this machine, each in a process of its own:
 *
 * - creating a database with two read regions, until both replicas serve. Goal: below 3 x the time from the spawn of an
 *   engine to its PONG, plus 200 ms.
 * - waking a database by a request at a node that is not its home, at its port and over REST, compared with the same at the home.
 *   Goal: p99 below 100 ms and one hop.
 *
 *   npm run bench places
 *
 * `HOMEPORT_BENCH_ROUNDS` sets how often each is done, default 20.
 */
import { createConnection } from 'node:net'
import { probeEngine } from '../src/fleet/index.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { cleanup, processesMarked, waitFor } from '../test/support/index.js'
import { bareSpawnToPong } from './support/engine-floor.js'
import { median, percentile } from './support/figures.js'
import { type BenchNode, startNodes } from './support/nodes.js'

const ROUNDS = Number(process.env.HOMEPORT_BENCH_ROUNDS ?? 20)
const REGIONS = ['us-east-1', 'eu-west-1', 'ap-southeast-1'] as const

interface Made {
  readonly database_id: string
  readonly port: number
  readonly password: string
  readonly rest_token: string
}

async function create({ homeport }: BenchNode, plan: string, readRegions: readonly string[]): Promise<Made> {
  const body = { database_name: 'bench', platform: 'aws', primary_region: REGIONS[0], plan }
  const answer = await homeport.api('POST', '/v2/redis/database', { ...body, read_regions: readRegions })
  if (answer.status !== 200)
    throw new Error(`the creation was answered ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body as Made
}

/** Connects, logs in and waits for the answer to PING. */
function ping({ host }: BenchNode, { port, password }: Made): Promise<void> {
  return new Promise((resolve, reject) => {
    let replies = ''
    const socket = createConnection({ host, port }, () => socket.write(`AUTH ${password}\r\nEXISTS nothing\r\n`))
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      replies += chunk
      if (replies !== '+OK\r\n:0\r\n') return
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`the database answered ${JSON.stringify(replies)}`)))
  })
}

async function rest({ host, homeport }: BenchNode, { rest_token }: Made): Promise<void> {
  const headers = { authorization: `Bearer ${rest_token}` }
  const answer = await fetch(`http://${host}:${homeport.place.restPort}/exists/nothing`, { headers })
  if (!answer.ok) throw new Error(`REST answered ${answer.status} ${await answer.text()}`)
  await answer.text()
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

const figures = (values: readonly number[]): string =>
  `p50 ${median(values).toFixed(1).padStart(7)} ms   p99 ${percentile(values, 0.99).toFixed(1).padStart(7)} ms`

async function measureCreation(home: BenchNode, binary: string): Promise<void> {
  const [floor, ours]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    floor.push(await bareSpawnToPong(binary))
    let made: Made | undefined
    ours.push(await timed(async () => (made = await create(home, 'payg', REGIONS.slice(1)))))
    await home.homeport.api('DELETE', `/v2/redis/database/${made?.database_id}`)
  }
  const goal = 3 * median(floor) + 200
  console.log(`engine by hand, spawn to PONG            ${figures(floor)}`)
  console.log(`create with 2 read regions, all serve    ${figures(ours)}   (goal: p50 below ${goal.toFixed(0)} ms)`)
}

async function untilAsleep({ homeport }: BenchNode, { database_id }: Made): Promise<void> {
  const sleeps = async () =>
    ((await homeport.api('GET', `/v2/redis/awake/${database_id}`)).body as { awake: boolean }).awake === false
  await waitFor(sleeps, { what: 'the database to sleep', deadlineMs: 120_000, everyMs: 20 })
  const hasNone = () => processesMarked(`${homeport.place.dataDir}/databases/${database_id}`).length === 0
  await waitFor(hasNone, { what: 'its engine to end', deadlineMs: 30_000 })
}

async function measureWaking(home: BenchNode, other: BenchNode): Promise<void> {
  const made = await create(home, 'fixed_250mb', [])
  const ways = [
    ['wake at the port, at the home', () => ping(home, made)],
    ['wake at the port, at another node', () => ping(other, made)],
    ['wake over REST, at the home', () => rest(home, made)],
    ['wake over REST, at another node', () => rest(other, made)],
  ] as const
  const times = ways.map((): number[] => [])
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, [, wake]] of ways.entries()) {
      await untilAsleep(home, made)
      times[index]?.push(await timed(wake))
    }
  }
  for (const [index, [name]] of ways.entries()) console.log(`${name.padEnd(40)} ${figures(times[index] ?? [])}`)
}

const postgres = await startPostgresServer()
try {
  const { binary, kind, version } = await probeEngine()
  console.log(`engine: ${kind} ${version}, ${ROUNDS} rounds`)
  const [home, other] = (await startNodes(`${postgres.url}/postgres`, REGIONS)) as [BenchNode, BenchNode]
  await measureCreation(home, binary)
  await measureWaking(home, other)
} finally {
  await cleanup()
  await postgres.stop()
}
