/**
 * `npm run crash -- --only stale-reads [--cycles <thousands of pairs>] [--seed <n>]`: two nodes, a home and one of a read
 * region, behind a link whose delay changes all the time. Clients write versions and read them in the region. Meanwhile
 * large values hold up the replication, and the engine of the replica is paused for moments. Every read has to show what was
 * written before it. Prints pairs, stale reads, and the share of reads that the replica has answered.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seeded } from '../src/base/testing/random.js'
import { type AclSecrets, giveSecrets } from '../src/contract/databases/acl-users.js'
import { DEFAULT_PLANS, NO_LIMIT } from '../src/contract/databases/plans.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import { StaleReads } from '../test/crash/stale-reads.js'
import { engineCalls } from '../test/databases/engine-calls.js'
import {
  cleanup,
  enginesIn,
  freePort,
  type RunningHomeport,
  startHomeport,
  tempDir,
  waitFor,
} from '../test/support/index.js'
import { type SlowWire, startSlowWire } from '../test/support/slow-wire.js'

const THOUSANDS = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1_000)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 31))
const LAGS_MS = [0, 0, 1, 2, 5, 20]
const CLIENTS = 3
const BATCH = 500
const DISTURB_EVERY_MS = 100
const PAUSES_MS = [5, 20, 50, 150]
const REPORT_EVERY_MS = 15_000
const LARGE = 'x'.repeat(3_000_000)
const NODES = {
  near: { host: '127.0.0.3', region: 'eu-west-1' },
  home: { host: '127.0.0.2', region: 'us-east-1' },
} as const

/** Least share of the reads that the replica must answer, percent. With less, the campaign has hardly tested it. */
const MIN_SHARE = 10
/** Length of the end of each node's log that is printed when a client has failed for good. */
const LOG_BYTES = 4_000

const random = seeded(SEED)
const pick = <Item>(items: readonly Item[]): Item => items[random.below(items.length)] as Item
const plansFile = join(tempDir(), 'plans.json')
const plan = { ...DEFAULT_PLANS.payg, db_max_commands_per_second: NO_LIMIT, price_per_100k_commands: 0 }
writeFileSync(plansFile, JSON.stringify({ payg: plan }))

/** One of the two nodes. The other one reaches it over a slow wire. */
interface SlowNode {
  readonly host: string
  readonly restPort: number
  readonly homeport: RunningHomeport
  readonly wire: SlowWire
}

interface Made {
  readonly database_id: string
  readonly port: number
  readonly password: string
  readonly rest_token: string
}

async function startNode(name: keyof typeof NODES, store: string, first?: SlowNode): Promise<SlowNode> {
  const { host, region } = NODES[name]
  const peerPort = await freePort()
  const wire = await startSlowWire(peerPort)
  const peer = ['--advertise', `127.0.0.1:${wire.port}`, '--peer-port', String(peerPort)]
  const args = ['--store', store, '--node', name, '--region', region, '--log-level', 'warn', '--plans-file', plansFile]
  const credentials = first && { credentials: first.homeport.credentials }
  const homeport = await startHomeport({ host, args: [...args, ...peer], ...credentials })
  return { host, restPort: homeport.place.restPort, homeport, wire }
}

async function createDatabase({ homeport }: SlowNode): Promise<Made> {
  const knows = async () =>
    ((await homeport.api('GET', '/v2/nodes')).body as object[]).filter((one) => 'engine_memory' in one).length === 2
  await waitFor(knows, { what: 'the nodes to know each other' })
  const body = { database_name: 'pairs', platform: 'aws', primary_region: NODES.home.region, plan: 'payg' }
  const made = await homeport.api('POST', '/v2/redis/database', { ...body, read_regions: [NODES.near.region] })
  if (made.status !== 200) throw new Error(`the creation was answered ${made.status} ${JSON.stringify(made.body)}`)
  return made.body as Made
}

async function createUsers({ host, restPort }: SlowNode, { rest_token }: Made): Promise<AclSecrets[]> {
  const headers = { authorization: `Bearer ${rest_token}` }
  const ask = async (...words: string[]): Promise<string> => {
    const answer = await fetch(`http://${host}:${restPort}/`, { method: 'POST', headers, body: JSON.stringify(words) })
    return String(((await answer.json()) as { result?: unknown }).result)
  }
  const users: AclSecrets[] = []
  for (let number = 0; number < CLIENTS; number++)
    users.push(await giveSecrets(ask, `user${number}`, ['on', '~stale:*', '+@all']))
  return users
}

/** Makes the replica lag. */
class Disturbance {
  readonly #home: SlowNode
  readonly #replicaDir: string
  readonly #token: string
  #large: Promise<unknown> | undefined

  constructor(home: SlowNode, near: SlowNode, { database_id, rest_token }: Made) {
    this.#home = home
    this.#replicaDir = join(near.homeport.place.dataDir, 'databases', database_id)
    this.#token = rest_token
  }

  go(): void {
    if (random.chance(0.5)) this.#home.wire.setLag(pick(LAGS_MS))
    if (random.chance(0.1)) this.#large ??= this.#writeLarge().finally(() => (this.#large = undefined))
    if (random.chance(0.1)) this.#pauseReplica()
  }

  async end(): Promise<void> {
    this.#home.wire.setLag(0)
    await this.#large
  }

  async #writeLarge(): Promise<void> {
    const { host, restPort } = this.#home
    const headers = { authorization: `Bearer ${this.#token}` }
    const answer = await fetch(`http://${host}:${restPort}/set/large`, { method: 'POST', headers, body: LARGE })
    await answer.text()
  }

  #pauseReplica(): void {
    const engine = enginesIn(this.#replicaDir)[0]?.pid
    if (engine === undefined) return
    const signal = (name: NodeJS.Signals): void => {
      // An engine that ended was restarted with another pid, so do not signal the old one.
      if (enginesIn(this.#replicaDir).some(({ pid }) => pid === engine)) process.kill(engine, name)
    }
    signal('SIGSTOP')
    setTimeout(() => signal('SIGCONT'), pick(PAUSES_MS))
  }
}

/** Counts the reads of the replica across restarts of its engine, which counts from 0 after each. */
class ReplicaReads {
  #total = 0
  #last = 0
  #turn: Promise<unknown> = Promise.resolve()
  readonly #calls: () => Promise<number>

  constructor(calls: () => Promise<number>) {
    this.#calls = calls
  }

  count(): Promise<number> {
    const counted = this.#turn.then(() => this.#count())
    this.#turn = counted
    return counted
  }

  /** Never rejects. */
  async #count(): Promise<number> {
    const now = await this.#calls().catch(() => this.#last)
    this.#total += now < this.#last ? now : now - this.#last
    this.#last = now
    return this.#total
  }
}

async function play(store: string): Promise<void> {
  const home = await startNode('home', store)
  const near = await startNode('near', store, home)
  const made = await createDatabase(home)
  const users = await createUsers(home, made)
  const reads = new StaleReads({ near, home, port: made.port, users, batch: BATCH, random })
  const disturbance = new Disturbance(home, near, made)
  const replica = new ReplicaReads(() => engineCalls(near.homeport.place.dataDir, NODES.near.region, made))
  const beganMs = performance.now()
  /** Prints the figures, and returns the share of the reads that the replica answered, percent. */
  const say = async (what: string): Promise<number> => {
    const { pairs, stale, refused, refusal } = reads.report
    const rate = Math.round((pairs * 1_000) / (performance.now() - beganMs))
    const share = ((await replica.count()) * 100) / Math.max(1, pairs)
    const memory = Math.round(process.memoryUsage().rss / 2 ** 20)
    const [count, perSecond] = [pairs, rate].map((figure) => figure.toLocaleString('en-US'))
    console.log(
      `${what}: ${count} pairs, ${stale} stale, ${share.toFixed(0)} % answered by the replica, ${perSecond} pairs/s, ${refused} batches refused, ${memory} MB (seed ${SEED})`,
    )
    if (refused > 0) console.log(`the last refusal: ${refusal}`)
    return share
  }
  let reportedMs = beganMs
  const step = (): void => {
    disturbance.go()
    if (random.chance(0.1)) void replica.count()
    if (performance.now() - reportedMs < REPORT_EVERY_MS) return
    reportedMs = performance.now()
    say('so far').catch(() => undefined)
  }
  try {
    await reads.until(THOUSANDS * 1_000, DISTURB_EVERY_MS, step)
  } catch (error) {
    for (const { homeport } of [home, near]) console.error(homeport.logs().slice(-LOG_BYTES))
    throw error
  }
  await disturbance.end()
  const { stale, examples } = await reads.stop()
  const share = await say('stale reads')
  for (const example of examples) console.log(example)
  if (stale > 0) throw new Error(`${stale} reads did not show what was written before them`)
  if (share < MIN_SHARE) throw new Error(`the replica has answered only ${share.toFixed(1)} % of the reads`)
}

const postgres = await startPostgresServer()
try {
  await play(`${postgres.url}/postgres`)
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await cleanup()
  await postgres.stop()
}
process.exit()
