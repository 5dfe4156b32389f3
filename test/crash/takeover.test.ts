import { connect, type Socket } from 'node:net'
import { expect, it, vi } from 'vitest'
import { pause, systemClock } from '../../src/base/index.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import type { DatabaseStandby } from '../../src/contract/server/standbys.js'
import { engineCalls } from '../databases/engine-calls.js'
import { Recorder, type Route } from '../histories/recorder.js'
import { atCleanup, call, waitFor } from '../support/index.js'
import { isRunning, NodeScene, type SceneNode } from './nodes.js'
import { randomFrom } from './random.js'
import { type Ask, Pairs } from './takeover-pairs.js'

/**
 * The home of a database dies, is paused, or is cut off, while clients write. The standby's node takes over; every write
 * that the home had answered by `complete_until` is there, in the mode `replicated` every write that it had answered at all,
 * and the old home acknowledges nothing after the new one. In the mode `replicated`, one order of all that clients at all
 * nodes were answered, before, meanwhile and after, explains it (`../histories`). A third node keeps the replica of a read
 * region: its clients read what they have written, the replica follows the new home, and shows nothing more of the old one.
 * `HOMEPORT_CRASH_CYCLES` sets the number of faults, as `npm run crash -- --only takeover --cycles 100` does; all are of one
 * kind with `HOMEPORT_CRASH_FAULT` (`--fault kill`). A campaign has PostgreSQL away for a minute, and pauses of 20 s.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
type Fault = 'pause' | 'pause beside PostgreSQL' | 'kill' | 'cut from PostgreSQL' | 'cut from the standby, then killed'
const ALL: readonly (readonly [Fault, DatabaseStandby['mode']])[] = [
  ['cut from the standby, then killed', 'replicated'],
  ['pause', 'async'],
  ['cut from PostgreSQL', 'async'],
  ['kill', 'replicated'],
  ['cut from the standby, then killed', 'async'],
  ['pause', 'replicated'],
  ['kill', 'async'],
  ['cut from PostgreSQL', 'replicated'],
  ['pause beside PostgreSQL', 'async'],
  ['pause beside PostgreSQL', 'replicated'],
]
const ONLY = process.env.HOMEPORT_CRASH_FAULT
const SCENES = ALL.filter(([fault]) => ONLY === undefined || fault === ONLY)
if (SCENES.length === 0)
  throw new Error(
    `HOMEPORT_CRASH_FAULT is "${ONLY}"; the faults are ${[...new Set(ALL.map(([fault]) => fault))].join('; ')}`,
  )
const WRITE_EVERY_MS = 5
const [AWAY_MS, PAUSE_MS] = CYCLES > 1 ? [60_000, 20_000] : [7_000, 0]
const TAKEN_WITHIN_MS = 30_000
const UNNOTICED_MS = 700
const REGION = 'us-east-1'
const READ_REGION = 'eu-west-1'
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? 20_261_128)
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
    ...{ method: 'POST', json: command, signal: AbortSignal.timeout(2_000) },
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

const standbyOf = async (node: SceneNode, { database_id }: Made): Promise<DatabaseStandby | undefined> =>
  ((await node.homeport.api('GET', '/v2/node-standbys')).body as DatabaseStandby[]).find(
    (one) => one.database_id === database_id,
  )

/** Writes numbers to a list, over one connection to the home that never waits for answers, as long as it lasts. */
class Direct {
  readonly answered: Answered[] = []
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout
  #sent = 0
  /** Answers of any kind to what was written. */
  replies = 0
  isClosed = false
  lastError = ''

  constructor({ port, password }: Made, list: string) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('error', () => undefined).on('close', () => (this.isClosed = true))
    this.#socket.write(`AUTH ${password}\r\n`)
    let rest = ''
    this.#socket.setEncoding('latin1').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#reply(line)
    })
    this.#timer = setInterval(() => this.#socket.write(`RPUSH ${list} ${++this.#sent}\r\n`), WRITE_EVERY_MS)
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
 * Sets the mode, and waits until the standby of a database has everything. After each fault the roles are swapped, without
 * being asked for.
 */
async function guard(home: SceneNode, other: SceneNode, made: Made, mode: DatabaseStandby['mode']): Promise<void> {
  const place = () => home.homeport.api('PUT', `/v2/node-standbys/${made.database_id}`, { mode })
  await waitFor(async () => (await place()).status === 200, { what: 'the home to answer' })
  const isWhole = async () => {
    const standby = await standbyOf(home, made)
    const isThere = standby?.home === home.name && standby.standby === other.name
    return isThere && standby.state === 'following' && standby.complete_until > 0
  }
  await waitFor(isWhole, { what: 'the standby to be complete' })
}

async function begin(fault: Fault, { homeport, toPostgres, fromPeers }: SceneNode, other: SceneNode): Promise<void> {
  switch (fault) {
    case 'kill':
      process.kill(homeport.pid, 'SIGKILL')
      break
    case 'pause':
      // When it wakes up, nobody tells it what has happened meanwhile.
      toPostgres.swallow('everything')
      process.kill(homeport.pid, 'SIGSTOP')
      break
    case 'pause beside PostgreSQL':
      process.kill(homeport.pid, 'SIGSTOP')
      break
    case 'cut from PostgreSQL':
      toPostgres.swallow('everything')
      break
    case 'cut from the standby, then killed':
      // Shorter than it takes the home to store that the standby is behind.
      for (const cable of [fromPeers, other.fromPeers]) cable.swallow('everything')
      await pause(systemClock, UNNOTICED_MS)
      process.kill(homeport.pid, 'SIGKILL')
      // What was on its way is gone.
      for (const cable of [fromPeers, other.fromPeers]) cable.cut()
      for (const cable of [fromPeers, other.fromPeers]) cable.mend()
      break
    default:
      fault satisfies never
  }
}

/** Ends the fault, once the old home has had the writes that were sent to it meanwhile. */
async function end(fault: Fault, { homeport, toPostgres }: SceneNode, direct: Direct): Promise<void> {
  if (!isRunning(homeport.pid)) return
  const before = direct.replies
  if (fault.startsWith('pause')) process.kill(homeport.pid, 'SIGCONT')
  await waitFor(() => direct.replies > before || direct.isClosed, { what: 'the answers of the old home' })
  toPostgres.mend()
}

/** A connection that has written. Another process on this machine may hold the port for some seconds after a takeover. */
async function connected(made: Made): Promise<{ direct: Direct; list: string }> {
  return waitFor(
    async () => {
      const list = `list:${Date.now()}`
      const direct = new Direct(made, list)
      await waitFor(() => direct.isClosed || direct.replies > 0, { what: 'an answer' })
      if (direct.answered.length > 0) return { direct, list }
      direct.stop()
      return undefined
    },
    { what: 'the port of the database' },
  )
}

type Roles = readonly [home: SceneNode, other: SceneNode, reader: SceneNode]

async function suffer(scene: NodeScene, index: number, [home, other, reader]: Roles, made: Made) {
  const [fault, mode] = SCENES[index % SCENES.length] as (typeof SCENES)[number]
  await guard(home, other, made, mode)
  if (mode === 'async') await untilReplicaAnswers(reader, made)
  const { direct, list } = await connected(made)
  const seen = () => `${direct.isClosed ? 'closed' : 'open'}, ${direct.replies} replies, ${direct.lastError}`
  await waitFor(() => direct.answered.length > 100, { what: 'writes' }).catch((error: unknown) => {
    throw new Error(`${mode}: ${seen()}`, { cause: error })
  })
  const name = `cycle${index}`
  const clients = { name, random: randomFrom(SEED + index), clients: CLIENTS }
  const routes = [home, reader, other].map((node) => routeBy(node, made))
  const recorder = new Recorder(routes, clients)
  const pairs = new Pairs(askAt(reader, made), name)
  await waitFor(() => recorder.answered > 50 && pairs.reads > 10, { what: 'calls of clients' })
  const writtenAt = Date.now()
  let completeUntil = 0
  const isFollowing = async () => {
    completeUntil = (await standbyOf(other, made))?.complete_until ?? 0
    return completeUntil > writtenAt
  }
  await waitFor(isFollowing, { what: 'the standby to follow' })
  const beganAt = Date.now()
  await begin(fault, home, other)
  const isPromoted = async () => (await standbyOf(other, made))?.home === other.name
  await waitFor(isPromoted, { what: 'the promotion', deadlineMs: TAKEN_WITHIN_MS })
  const promotedAt = Date.now()
  const serves = async () => (await rest(other, made.rest_token, ['SET', 'taken', fault])).status === 200
  await waitFor(() => serves().catch(() => false), { what: 'the new home', deadlineMs: TAKEN_WITHIN_MS })
  const ms = Date.now() - beganAt
  const before = { calls: recorder.answered, reads: pairs.reads }
  const goesOn = () => recorder.answered > before.calls + 50 && pairs.reads > before.reads + 10
  await waitFor(goesOn, { what: 'calls of clients at the new home' })
  if (mode === 'async') await untilReplicaAnswers(reader, made)
  if (fault.startsWith('pause')) await pause(systemClock, beganAt + PAUSE_MS - Date.now())
  await end(fault, home, direct)
  await waitFor(() => !isRunning(home.homeport.pid), { what: 'the old home to end', deadlineMs: 60_000 })
  direct.stop()
  await pairs.stop()
  const calls = recorder.answered
  const breaches = await recorder.breaches()
  if (mode === 'replicated') expect({ seed: SEED, breaches }).toEqual({ seed: SEED, breaches: [] })

  const mayBeLost = (writtenAt: number) => mode === 'async' && writtenAt > completeUntil && writtenAt < promotedAt
  expect(pairs.broken.filter(({ writtenAt }) => !mayBeLost(writtenAt))).toEqual([])
  const late = direct.answered.filter(({ at }) => at > promotedAt)
  expect(late).toEqual([])
  const { result } = (await rest(other, made.rest_token, ['LRANGE', list, '0', '-1'])).body as { result: string[] }
  const kept = new Set(result.map(Number))
  const lost = direct.answered.filter(({ number }) => !kept.has(number))
  expect(lost.filter(({ at }) => mode === 'replicated' || at <= completeUntil)).toEqual([])
  const { body: metrics } = await other.homeport.api('GET', '/metrics')
  expect(metrics).toMatch(/^homeport_database_promotions_total [1-9]/m)
  home.homeport = await scene.restart(home)
  expect((await rest(home, made.rest_token, ['GET', 'taken'])).status).toBe(200)
  const writes = { answered: direct.answered.length, lost: lost.length, calls, breaches: breaches.length }
  return { fault, mode, ms, ...writes, pairs: pairs.reads, pairsLost: pairs.broken.length }
}

type Reported = Awaited<ReturnType<typeof suffer>>

function summary(name: string, reported: readonly Reported[]): string {
  const own = reported.filter(({ fault, mode }) => `${fault}, ${mode}` === name)
  const times = own.map(({ ms }) => ms).sort((one, other) => one - other)
  const sum = (field: 'answered' | 'lost') => own.reduce((all, each) => all + each[field], 0)
  const served = `served after p50 ${times[Math.floor(times.length / 2)]} ms, at most ${times.at(-1)} ms`
  return `${name}: ${own.length} times, ${served}; ${sum('lost')} of ${sum('answered')} answered writes lost, none from before the reported moment`
}

it('a standby takes over from a home that is lost, and only then', { timeout: 120_000 + CYCLES * 90_000 }, async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const scene = await NodeScene.start({
    ...{ nodes: 3, regions: [REGION, REGION, READ_REGION], random: randomFrom(SEED) },
    onDisturbance: () => undefined,
  })
  atCleanup(() => scene.stop())
  const [, , reader] = scene.nodes as [SceneNode, SceneNode, SceneNode]
  let [home, other] = scene.nodes as [SceneNode, SceneNode, SceneNode]
  const asked = { database_name: 'guarded', platform: 'aws', primary_region: REGION, read_regions: [READ_REGION] }
  const made = (await home.homeport.api('POST', '/v2/redis/database', { ...asked, plan: 'payg' })).body as Made
  await home.homeport.api('PUT', `/v2/node-standbys/${made.database_id}`)
  if ((await standbyOf(home, made))?.home === other.name) [home, other] = [other, home]
  await guard(home, other, made, 'async')

  // PostgreSQL is away: the home serves on, because the standby's node promises not to take over.
  for (const { toPostgres } of scene.nodes) toPostgres.swallow('everything')
  const endAt = Date.now() + AWAY_MS
  const answers = new Set<number>()
  while (Date.now() < endAt) answers.add((await rest(home, made.rest_token, ['INCR', 'meanwhile'])).status)
  for (const { toPostgres } of scene.nodes) toPostgres.mend()
  expect([...answers]).toEqual([200])

  const reported = []
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    reported.push(await suffer(scene, cycle, [home, other, reader], made))
    ;[home, other] = [other, home]
  }
  console.log(`takeover: ${JSON.stringify(reported)}`)
  for (const name of new Set(reported.map(({ fault, mode }) => `${fault}, ${mode}`)))
    console.log(summary(name, reported))
})
