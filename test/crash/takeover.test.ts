import { connect, type Socket } from 'node:net'
import { expect, it, vi } from 'vitest'
import { pause, systemClock } from '../../src/base/index.js'
import { randomFrom } from '../../src/base/testing/random.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import type { DatabaseStandby } from '../../src/contract/server/standbys.js'
import { engineCalls } from '../databases/engine-calls.js'
import { Recorder, type Route } from '../histories/recorder.js'
import { atCleanup, call, waitFor } from '../support/index.js'
import { isRunning, NodeScene, type SceneNode } from './nodes.js'
import { begin, end, isWithoutFirst, lostIn, type Roles, scenesOf } from './takeover-faults.js'
import { type Ask, Pairs } from './takeover-pairs.js'

/**
 * The home of a database dies, is paused, or is cut off, while clients write. The node of its standby takes over; of two
 * standbys, the node of the one that is furthest. Then:
 *
 * - Every write that the home had answered by its `complete_until` is there. In the mode `replicated`, every write that it
 *   had answered at all is there, also when a standby dies with the home.
 * - The old home acknowledges nothing after the new one.
 * - In the mode `replicated`, one order explains all answers to clients at all nodes, before, during and after the fault
 *   (`../histories`).
 * - A fourth node keeps the replica of a read region. Its clients read what they have written; the replica follows the new
 *   home, and shows nothing more of the old one.
 *
 * `HOMEPORT_CRASH_CYCLES` sets the number of faults, as `npm run crash -- --only takeover --cycles 100` does.
 * `HOMEPORT_CRASH_FAULT` (`--fault kill`) makes all of one kind, `HOMEPORT_CRASH_STANDBYS` sets the number of standbys. In
 * a campaign, PostgreSQL is away for a minute, and pauses last 20 s.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SCENES = scenesOf(process.env.HOMEPORT_CRASH_FAULT, process.env.HOMEPORT_CRASH_STANDBYS)
const [AWAY_MS, PAUSE_MS] = CYCLES > 1 ? [60_000, 20_000] : [7_000, 0]
/** Time between two calls of a client. */
const BETWEEN_MS = CYCLES > 1 ? 2 : 50
/** Time between two writes of `Direct`, before and during a fault: some writes are in flight when the home dies. */
const [WRITE_EVERY_MS, HURRY_EVERY_MS] = CYCLES > 1 ? [5, 5] : [25, 2]
const TAKEN_WITHIN_MS = 30_000
const REGION = 'us-east-1'
const READ_REGION = 'eu-west-1'
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? 20_261_128)
/** Nodes that may serve the database. */
const HOMES = 3
/** Clients through each node. */
const CLIENTS = 2

type Made = DatabaseRecord & Record<'rest_token' | 'password', string>

/** A write that was answered, and when. */
interface Answered {
  readonly number: number
  readonly at: number
}

const rest = ({ homeport }: SceneNode, token: string, command: readonly string[], syncToken?: string) =>
  call(`${homeport.restUrl}/`, {
    method: 'POST',
    json: command,
    signal: AbortSignal.timeout(2_000),
    headers: {
      authorization: `Bearer ${token}`,
      ...(syncToken !== undefined && { 'upstash-sync-token': syncToken }),
    },
  })

/** Asks a node, whether it is the home or not. */
const askAt =
  (node: SceneNode, { rest_token }: Made): Ask =>
  async (command, syncToken) => {
    const { status, headers, body } = await rest(node, rest_token, command, syncToken)
    if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
    return { result: (body as { result: unknown }).result, token: headers.get('upstash-sync-token') ?? '' }
  }

const routeBy =
  (node: SceneNode, made: Made): Route =>
  async (command) =>
    (await askAt(node, made)(command)).result

/** Resolves when the replica of the read region has answered a read. */
async function untilReplicaAnswers(reader: SceneNode, made: Made): Promise<void> {
  const calls = () => engineCalls(reader.place.dataDir, READ_REGION, made).catch(() => 0)
  const isAnswering = async () => {
    const before = await calls()
    await rest(reader, made.rest_token, ['GET', 'taken']).catch(() => undefined)
    return before > 0 && (await calls()) > before
  }
  await waitFor(isAnswering, { what: 'the replica of the read region to answer', deadlineMs: TAKEN_WITHIN_MS })
}

/** The standbys of a database, by slot. */
const standbysOf = async (node: SceneNode, { database_id }: Made): Promise<readonly DatabaseStandby[]> =>
  ((await node.homeport.api('GET', '/v2/node-standbys')).body as DatabaseStandby[]).filter(
    (one) => one.database_id === database_id,
  )

/** Writes numbers to a list over one connection to the home, without waiting for answers, until it is stopped. */
class Direct {
  readonly answered: Answered[] = []
  readonly #socket: Socket
  readonly #list: string
  #timer: NodeJS.Timeout | undefined
  #sent = 0
  /** Answers of any kind to what was written. */
  replies = 0
  isClosed = false
  lastError = ''

  constructor({ port, password }: Made, list: string) {
    this.#list = list
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('error', () => undefined).on('close', () => (this.isClosed = true))
    this.#socket.write(`AUTH ${password}\r\n`)
    let rest = ''
    this.#socket.setEncoding('latin1').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#reply(line)
    })
    this.writeEvery(WRITE_EVERY_MS)
  }

  writeEvery(ms: number): void {
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.#socket.write(`RPUSH ${this.#list} ${++this.#sent}\r\n`), ms)
  }

  #reply(line: string): void {
    if (line === '+OK') return
    this.replies++
    if (line.startsWith('-')) this.lastError = line
    if (line.startsWith(':')) this.answered.push({ number: this.replies, at: Date.now() })
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#socket.destroy()
  }
}

/**
 * Sets the mode and the number of standbys, and waits until each of them has everything. After each fault the roles are
 * swapped: the old home becomes the standby by itself.
 */
async function guard(
  nodes: readonly SceneNode[],
  made: Made,
  mode: DatabaseStandby['mode'],
  copies: number,
): Promise<Roles> {
  const [any] = nodes as readonly [SceneNode]
  const place = () => any.homeport.api('PUT', `/v2/node-standbys/${made.database_id}`, { mode, copies })
  await waitFor(async () => (await place()).status === 200, { what: 'a node to answer' })
  const isComplete = (one: DatabaseStandby) => one.standby !== '' && one.state === 'following' && one.complete_until > 0
  return waitFor(
    async () => {
      const rows = await standbysOf(any, made)
      const home = nodes.find(({ name }) => name === rows[0]?.home)
      const standbys = rows.flatMap(({ standby }) => nodes.find(({ name }) => name === standby) ?? [])
      return home && standbys.length === copies && rows.every(isComplete) ? { home, standbys } : undefined
    },
    { what: `${copies} complete standbys`, deadlineMs: TAKEN_WITHIN_MS },
  )
}

/** A connection that has written. Another process on this machine may hold the port for some seconds after a takeover. */
async function connected(made: Made): Promise<{ direct: Direct; list: string }> {
  let said = ''
  return waitFor(
    async () => {
      const list = `list:${Date.now()}`
      const direct = new Direct(made, list)
      await waitFor(() => direct.isClosed || direct.replies > 0, { what: 'an answer' })
      if (direct.answered.length > 0) return { direct, list }
      said = direct.lastError
      direct.stop()
      return undefined
    },
    { what: 'the port of the database' },
  ).catch((error: unknown) => {
    throw new Error(`port ${made.port} said last: "${said}"`, { cause: error })
  })
}

async function suffer(scene: NodeScene, index: number, made: Made) {
  const [fault, mode, copies] = SCENES[index % SCENES.length] as (typeof SCENES)[number]
  const nodes = scene.nodes.slice(0, HOMES)
  const reader = scene.nodes[HOMES] as SceneNode
  const roles = await guard(nodes, made, mode, copies)
  const { home, standbys } = roles
  // It outlives every fault.
  const survivor = standbys.at(-1) as SceneNode
  if (mode === 'async') await untilReplicaAnswers(reader, made)
  const { direct, list } = await connected(made)
  const seen = () => `${direct.isClosed ? 'closed' : 'open'}, ${direct.replies} replies, ${direct.lastError}`
  await waitFor(() => direct.answered.length > 20, { what: 'writes' }).catch((error: unknown) => {
    throw new Error(`${mode}: ${seen()}`, { cause: error })
  })
  const name = `cycle${index}`
  const clients = { name, random: randomFrom(SEED + index), clients: CLIENTS, betweenMs: BETWEEN_MS }
  const routes = [home, reader, survivor].map((node) => routeBy(node, made))
  const recorder = new Recorder(routes, clients)
  const pairs = new Pairs(askAt(reader, made), name, BETWEEN_MS)
  await waitFor(() => recorder.answered > 50 && pairs.reads > 10, { what: 'calls of clients' })
  const writtenAt = Date.now()
  let before: readonly DatabaseStandby[] = []
  const isFollowing = async () => {
    before = await standbysOf(survivor, made)
    return before.every(({ complete_until }) => complete_until > writtenAt)
  }
  await waitFor(isFollowing, { what: 'the standbys to follow' })
  const beganAt = Date.now()
  direct.writeEvery(HURRY_EVERY_MS)
  await begin(fault, roles, async () => (await standbysOf(survivor, made))[0]?.state === 'behind')
  const behind = (await standbysOf(survivor, made)).filter(({ state }) => state === 'behind')
  const newHome = async () => {
    const [row] = await standbysOf(survivor, made)
    return row?.home === home.name ? undefined : standbys.find((one) => one.name === row?.home)
  }
  const next = await waitFor(newHome, { what: 'the promotion', deadlineMs: TAKEN_WITHIN_MS })
  const promotedAt = Date.now()
  const serves = async () => (await rest(next, made.rest_token, ['SET', 'taken', fault])).status === 200
  await waitFor(() => serves().catch(() => false), { what: 'the new home', deadlineMs: TAKEN_WITHIN_MS })
  const ms = Date.now() - beganAt
  if (isWithoutFirst(fault)) expect(next.name).not.toBe(standbys[0]?.name)
  const answered = { calls: recorder.answered, reads: pairs.reads }
  const goesOn = () => recorder.answered > answered.calls + 50 && pairs.reads > answered.reads + 10
  await waitFor(goesOn, { what: 'calls of clients at the new home' })
  if (mode === 'async') await untilReplicaAnswers(reader, made)
  if (fault.startsWith('pause')) await pause(systemClock, beganAt + PAUSE_MS - Date.now())
  const replies = direct.replies
  await end(fault, roles, () => direct.replies > replies || direct.isClosed)
  await waitFor(() => !lostIn(fault, roles).some(({ homeport }) => isRunning(homeport.pid)), {
    what: 'the lost nodes to end',
  })
  direct.stop()
  await pairs.stop()
  const calls = recorder.answered
  const breaches = await recorder.breaches()
  if (mode === 'replicated') expect({ seed: SEED, breaches }).toEqual({ seed: SEED, breaches: [] })

  const completeUntil = before.find(({ standby }) => standby === next.name)?.complete_until ?? 0
  const mayBeLost = (at: number) => mode === 'async' && at > completeUntil && at < promotedAt
  expect(pairs.broken.filter((one) => !mayBeLost(one.writtenAt))).toEqual([])
  const late = direct.answered.filter(({ at }) => at > promotedAt)
  expect(late).toEqual([])
  const { result } = (await rest(next, made.rest_token, ['LRANGE', list, '0', '-1'])).body as { result: string[] }
  const kept = new Set(result.map(Number))
  const lost = direct.answered.filter(({ number }) => !kept.has(number))
  expect(lost.filter(({ at }) => mode === 'replicated' || at <= completeUntil)).toEqual([])
  const { body: metrics } = await next.homeport.api('GET', '/metrics')
  expect(metrics).toMatch(/^homeport_database_promotions_total [1-9]/m)
  for (const node of nodes) if (!isRunning(node.homeport.pid)) node.homeport = await scene.restart(node)
  expect((await rest(home, made.rest_token, ['GET', 'taken'])).status).toBe(200)
  const writes = { answered: direct.answered.length, lost: lost.length, calls, breaches: breaches.length }
  const counts = { copies, behind: behind.length, slot: standbys.indexOf(next) + 1 }
  return { fault, mode, ...counts, ms, ...writes, pairs: pairs.reads, pairsLost: pairs.broken.length }
}

type Reported = Awaited<ReturnType<typeof suffer>>

const nameOf = ({ fault, mode, copies }: Reported): string =>
  `${fault}, ${mode}, ${copies} standby${copies > 1 ? 's' : ''}`

function summary(name: string, reported: readonly Reported[]): string {
  const own = reported.filter((one) => nameOf(one) === name)
  const times = own.map(({ ms }) => ms).sort((one, other) => one - other)
  const sum = (field: 'answered' | 'lost') => own.reduce((all, each) => all + each[field], 0)
  const served = `served after p50 ${times[Math.floor(times.length / 2)]} ms, at most ${times.at(-1)} ms`
  return `${name}: ${own.length} times, ${served}; ${sum('lost')} of ${sum('answered')} answered writes lost, none from before the reported moment`
}

it('a standby takes over from a home that is lost, and only then', { timeout: 120_000 + CYCLES * 90_000 }, async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const regions = [...Array<string>(HOMES).fill(REGION), READ_REGION]
  const scene = await NodeScene.start({
    // The clients do not use the balancer.
    nodes: regions.length,
    regions,
    random: randomFrom(SEED),
    readyEveryMs: 1_000,
    onDisturbance: () => undefined,
  })
  atCleanup(() => scene.stop())
  const nodes = scene.nodes.slice(0, HOMES)
  const [first] = nodes as [SceneNode]
  const asked = { database_name: 'guarded', platform: 'aws', primary_region: REGION, read_regions: [READ_REGION] }
  const made = (await first.homeport.api('POST', '/v2/redis/database', { ...asked, plan: 'payg' })).body as Made
  const { home } = await guard(nodes, made, 'async', 2)

  // PostgreSQL is away: the home serves on, because the nodes of both standbys promise not to take over.
  for (const { toPostgres } of scene.nodes) toPostgres.swallow('everything')
  const endAt = Date.now() + AWAY_MS
  const answers = new Set<number>()
  while (Date.now() < endAt) {
    answers.add((await rest(home, made.rest_token, ['INCR', 'meanwhile'])).status)
    await pause(systemClock, BETWEEN_MS)
  }
  for (const { toPostgres } of scene.nodes) toPostgres.mend()
  expect([...answers]).toEqual([200])

  const reported = []
  for (let cycle = 0; cycle < CYCLES; cycle++) reported.push(await suffer(scene, cycle, made))
  console.log(`takeover: ${JSON.stringify(reported)}`)
  for (const name of new Set(reported.map(nameOf))) console.log(summary(name, reported))
})
