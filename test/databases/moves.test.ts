import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis as RedisClient } from 'iovalkey'
import { beforeAll, describe, expect, it } from 'vitest'
import { pause, systemClock } from '../../src/base/index.js'
import { randomFrom } from '../../src/base/testing/random.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import type { DatabaseMove } from '../../src/contract/server/moves.js'
import { Recorder } from '../histories/recorder.js'
import {
  type Answer,
  atCleanup,
  freePortRange,
  newPlace,
  type Place,
  runHomeport,
  tempDir,
  waitFor,
} from '../support/index.js'
import { SlowRequest, stallingRequest, Uploader } from './large-values.js'
import { makeNodeStore, startNode, type TestNode } from './test-node.js'

/** Moves of databases between nodes, while clients write. */

let a: TestNode
let b: TestNode

beforeAll(async () => {
  await makeNodeStore()
  a = await startNode('a', await roomyPlace())
  b = await startNode('b', await roomyPlace())
  await meet()
})

type Made = DatabaseRecord & Record<'rest_token' | 'password', string>

const WRITE_EVERY_MS = 5
/** Time between two requests of a client that waits for each answer, or for its disconnection. */
const BETWEEN_MS = 5
/** Longer than the move waits for a client that sends nothing. */
const LARGE_TAKES_MS = 1_500
/** How many databases leave a drained node; `npm run crash -- --only drain --cycles 50` has more. */
const DRAINED = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 3)

const record = ({ body }: Answer) => body as Made

async function create(node: TestNode, name: string, more: object = {}): Promise<Made> {
  const asked = { database_name: name, platform: 'aws', primary_region: 'us-east-1', plan: 'payg', ...more }
  const answer = await node.api('POST', '/v2/redis/database', asked)
  expect(answer).toMatchObject({ status: 200 })
  return record(answer)
}

/** A place with a port for every database that is drained. */
async function roomyPlace(): Promise<Place> {
  const { from, to } = await freePortRange(DRAINED + 10)
  return newPlace({ dataDir: tempDir(), redisPorts: `${from}-${to}` })
}

async function meet(): Promise<void> {
  const knows = async (node: TestNode) => {
    const nodes = (await node.api('GET', '/v2/nodes')).body as { state: string }[]
    return nodes.filter(({ state }) => state === 'live').length === 2
  }
  const knowEachOther = async () => (await Promise.all([a, b].map(knows))).every(Boolean)
  await waitFor(knowEachOther, { what: 'the nodes to know each other' })
}

async function remove(node: TestNode, { database_id }: Made): Promise<void> {
  expect(await node.api('DELETE', `/v2/redis/database/${database_id}`)).toMatchObject({ status: 200, body: 'OK' })
}

/** A client that writes without a break, as applications do: with the client's own queue, and its own way to connect again. */
class DrainedClient {
  readonly errors: unknown[] = []
  connects = 0
  written = 0
  /** The longest time from one answer to the next. */
  longestGapMs = 0
  readonly #redis: RedisClient
  readonly #writing: Promise<void>
  #isOver = false

  constructor({ port, password }: Made) {
    this.#redis = new RedisClient({ host: '127.0.0.1', port, password, retryStrategy: () => 20 })
    this.#redis.on('ready', () => this.connects++).on('error', () => undefined)
    atCleanup(() => this.#redis.disconnect())
    this.#writing = this.#write()
  }

  async #write(): Promise<void> {
    for (let answeredMs = performance.now(); !this.#isOver; ) {
      await this.#redis.incr('count').then(
        () => this.written++,
        (error: unknown) => this.errors.push(error),
      )
      this.longestGapMs = Math.max(this.longestGapMs, performance.now() - answeredMs)
      answeredMs = performance.now()
      await pause(systemClock, WRITE_EVERY_MS)
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#writing
    this.#redis.disconnect()
  }
}

function drainReport(clients: readonly DrainedClient[]): string {
  const gaps = clients.map(({ longestGapMs }) => Math.round(longestGapMs)).sort((one, other) => one - other)
  const sum = (of: (client: DrainedClient) => number) => clients.reduce((all, client) => all + of(client), 0)
  const again = sum(({ connects }) => connects - 1)
  const gap = `longest time without an answer p50 ${gaps[Math.floor(gaps.length / 2)]} ms, at most ${gaps.at(-1)} ms`
  return `drain: ${clients.length} databases, ${sum(({ errors }) => errors.length)} errors, ${again} connected again, ${gap}`
}

const latest = async (node: TestNode, databaseId: string) =>
  ((await node.api('GET', '/v2/node-moves')).body as DatabaseMove[]).find((move) => move.database_id === databaseId)

async function move(node: TestNode, databaseId: string, to: string): Promise<DatabaseMove> {
  const asked = await node.api('POST', `/v2/nodes/${to}/databases`, { database_id: databaseId })
  expect(asked).toMatchObject({ status: 200, body: 'OK' })
  await waitFor(async () => ['done', 'failed'].includes((await latest(node, databaseId))?.state ?? ''), {
    what: 'the move to end',
  })
  return (await latest(node, databaseId)) as DatabaseMove
}

describe('a database that moves to another node', () => {
  it('keeps every acknowledged write, its settings and its backups', async () => {
    const made = await create(a, 'moves', { read_regions: ['eu-west-1'] })
    const id = made.database_id
    const path = `/v2/redis/database/${id}`
    for (let i = 0; i < 20; i++) await a.rest(made.rest_token, ['SET', `before:${i}`, 'x'.repeat(10_000)])
    expect((await a.api('POST', `/v2/redis/create-backup/${id}`, { name: 'kept' })).status).toBe(200)
    expect((await b.rest(made.rest_token, ['GET', 'before:1'])).status).toBe(200)

    // A client writes all the time, and reconnects when it is disconnected.
    let connects = 0
    let counter = 0
    let isOver = false
    const connected = (): RedisClient => {
      const one = new RedisClient({
        host: '127.0.0.1',
        port: made.port,
        password: made.password,
        retryStrategy: () => 20,
        maxRetriesPerRequest: 0,
        tls: made.tls ? { rejectUnauthorized: false } : undefined,
      })
      one.on('error', () => undefined)
      atCleanup(() => one.disconnect())
      return one
    }
    const [client, piped] = [connected(), connected()]
    client.on('ready', () => connects++)
    const acknowledged: number[] = []
    const writing = (async () => {
      while (!isOver) {
        const number = ++counter
        await client.rpush('list', number).then(
          () => acknowledged.push(number),
          () => pause(systemClock, BETWEEN_MS),
        )
      }
    })()
    // Requests over REST wait at the old home, which passes them on.
    const failures: unknown[] = []
    let requests = 0
    const requesting = [a, b].map(async (node) => {
      while (!isOver) {
        const { status, body } = await node.rest(made.rest_token, ['INCR', 'requests'])
        if (status !== 200) failures.push(body)
        requests++
        await pause(systemClock, BETWEEN_MS)
      }
    })
    // Another client sends more without waiting for answers.
    let busy = 0
    const pipelining = Array.from({ length: 16 }, async () => {
      while (!isOver) {
        await piped.incr('busy').then(
          () => busy++,
          () => pause(systemClock, BETWEEN_MS),
        )
      }
    })
    const routes = [a, b].map((node) => async (command: readonly string[]) => {
      const { status, body } = await node.rest(made.rest_token, command)
      expect(status).toBe(200)
      return (body as { result: unknown }).result
    })
    const recorder = new Recorder(routes, { name: 'moving', random: randomFrom(1), clients: 2, betweenMs: BETWEEN_MS })
    await waitFor(() => acknowledged.length > 50 && busy > 1_000 && recorder.answered > 50, { what: 'writes' })

    expect(await move(b, id, 'b')).toMatchObject({ state: 'done', from: 'a', to: 'b', problem: '' })
    const before = acknowledged.length
    const calls = recorder.answered
    const isUsed = () => acknowledged.length > before + 50 && recorder.answered > calls + 50
    await waitFor(isUsed, { what: 'writes at the new home' })
    isOver = true
    // One order of all that was answered, before and after the move, explains it.
    expect(await recorder.breaches()).toEqual([])
    await Promise.all([writing, ...requesting, ...pipelining])
    expect(failures).toEqual([])
    expect((await a.rest(made.rest_token, ['GET', 'requests'])).body).toEqual({ result: String(requests) })
    const { result } = (await b.rest(made.rest_token, ['LRANGE', 'list', '0', '-1'])).body as { result: string[] }
    const stored = new Set(result.map(Number))
    expect(acknowledged.filter((number) => !stored.has(number))).toEqual([])
    expect(connects).toBe(2)
    expect(
      Number(((await b.rest(made.rest_token, ['GET', 'busy'])).body as { result: string }).result),
    ).toBeGreaterThanOrEqual(busy)

    // Both nodes answer for the database, and the old home has set its files aside.
    for (const node of [a, b]) {
      expect((await node.rest(made.rest_token, ['GET', 'before:7'])).body).toEqual({ result: 'x'.repeat(10_000) })
      expect((await node.api('GET', path)).body).toMatchObject({ port: made.port, modifying_state: '' })
    }
    expect(await readdir(join(a.place.dataDir, 'databases'))).toEqual([])
    expect(await readdir(join(b.place.dataDir, 'databases', id))).toEqual(['eu-west-1', 'us-east-1'])
    expect((await a.api('GET', '/v2/redis/quarantine')).body).toMatchObject([
      { database_id: id, reason: 'The database has moved to the node b.' },
    ])
    const [backup] = (await b.api('GET', `/v2/redis/list-backup/${id}`)).body as { backup_id: string }[]
    expect((await a.api('POST', `/v2/redis/restore-backup/${id}`, { backup_id: backup?.backup_id })).status).toBe(200)
    expect((await a.rest(made.rest_token, ['EXISTS', 'list'])).body).toEqual({ result: 0 })

    // The database moves back, and after a restart of both nodes it is where the row says. No client gets an error: a
    // command that waits for an event waits at the new home, a large command arrives whole before the switch, and a command
    // whose rest never arrives has no effect.
    const patient = (): RedisClient => {
      const one = new RedisClient({ host: '127.0.0.1', port: made.port, password: made.password })
      one.on('error', () => undefined)
      atCleanup(() => one.disconnect())
      return one
    }
    const blocked = patient().blpop('event', 0)
    const idle = patient()
    await idle.ping()
    const [slow, stalled] = [new Uploader(made), new Uploader(made)]
    await waitFor(() => [slow, stalled].every(({ isLoggedIn }) => isLoggedIn), { what: 'the logins' })
    slow.begin('slow')
    stalled.begin('stalled')
    const stalledRequest = stallingRequest(b, made)
    // The body arrives when another node is the home.
    const begun = [a, b].map((node) => new SlowRequest(node, made, ['INCR', 'late']))
    const isBegun = async () => !['asked', 'done'].includes((await latest(b, id))?.state ?? 'done')
    const moving = runHomeport(['nodes', 'move', id, '--to', 'a'], { env: a.env })
    await waitFor(isBegun, { what: 'the move to begin', everyMs: 5 })
    await slow.finishWithin(LARGE_TAKES_MS)
    expect(await moving).toEqual({
      code: 0,
      stdout: '',
      stderr: `${id} has moved to a. b keeps its old files in quarantine.\n`,
    })
    expect(slow.received).toBe('+OK\r\n+OK\r\n')
    expect(await stalledRequest).toMatchObject({ status: 503, body: expect.stringContaining('Nothing was done') })
    for (const one of begun) one.finish()
    const late = await Promise.all(begun.map(({ answer }) => answer))
    expect(late.map(({ status, body }) => `${status} ${body}`).sort()).toEqual(['200 {"result":1}', '200 {"result":2}'])
    await waitFor(() => stalled.isClosed, { what: 'the client to be disconnected' })
    expect(stalled.received).toBe('+OK\r\n')
    expect(await idle.get('stalled')).toBe(null)
    expect(await idle.strlen('slow')).toBe(slow.bytes)
    await idle.rpush('event', 'happens')
    expect(await blocked).toEqual(['event', 'happens'])
    expect((await a.rest(made.rest_token, ['SET', 'k', 'v'])).body).toEqual({ result: 'OK' })
    await Promise.all([a.stop(), b.stop()])
    a = await startNode('a', a.place)
    expect((await a.rest(made.rest_token, ['GET', 'k'])).body).toEqual({ result: 'v' })
    b = await startNode('b', b.place)
    await meet()
    await remove(a, made)
  })

  it('has one home and all its data when either node ends in the middle', async () => {
    const made = await create(a, 'cut')
    const id = made.database_id
    for (let i = 0; i < 50; i++) await a.rest(made.rest_token, ['SET', `k${i}`, 'x'.repeat(100_000)])
    const ended = async (node: TestNode): Promise<void> => {
      await waitFor(async () => ['done', 'failed'].includes((await latest(node, id))?.state ?? ''), {
        what: 'the move to end',
      })
    }
    const copying = () =>
      waitFor(async () => (await latest(a, id))?.state !== 'asked', { what: 'the copy to begin', everyMs: 1 })

    // The target ends.
    await a.api('POST', '/v2/nodes/b/databases', { database_id: id })
    await copying()
    await b.stop()
    b = await startNode('b', b.place)
    await meet()
    await ended(b)
    await waitFor(async () => (await b.rest(made.rest_token, ['DBSIZE'])).body, { what: 'an answer' })
    const count = async (node: TestNode) => (await node.rest(made.rest_token, ['DBSIZE'])).body
    await waitFor(async () => JSON.stringify(await count(b)) === '{"result":50}', { what: 'the data' })

    // The source ends; its next life decides.
    const home = (await latest(b, id))?.state === 'done' ? 'b' : 'a'
    const [from, to] = home === 'a' ? [a, b] : [b, a]
    await to.api('POST', `/v2/nodes/${to.name}/databases`, { database_id: id })
    await waitFor(async () => (await latest(to, id))?.state !== 'asked', { what: 'the copy to begin', everyMs: 1 })
    await from.stop()
    const next = await startNode(from.name, from.place)
    if (home === 'a') a = next
    else b = next
    await meet()
    await ended(next)
    for (const node of [to, next]) {
      await waitFor(async () => JSON.stringify(await count(node)) === '{"result":50}', { what: 'the data' })
    }
    const dirs = await Promise.all([to, next].map(({ place }) => readdir(join(place.dataDir, 'databases'))))
    expect(dirs.flat().filter((name) => name === id)).toEqual([id])
    await remove(a, made)
  })

  it(
    'leaves a node that is drained, and the node can be removed then',
    async () => {
      const made: Made[] = []
      for (let number = 0; number < DRAINED; number++) made.push(await create(a, `drained-${number}`))
      const clients = made.map((one) => new DrainedClient(one))
      const deadlineMs = 60_000 + DRAINED * 2_000
      await waitFor(() => clients.every(({ written }) => written > 10), {
        what: 'writes to every database',
        deadlineMs,
      })
      const away = async (): Promise<boolean> => {
        const nodes = (await b.api('GET', '/v2/nodes')).body as { name: string; databases: number }[]
        return nodes.some(({ name, databases }) => name === 'a' && databases === 0)
      }
      expect(await b.api('POST', '/v2/nodes/a/drain')).toMatchObject({ status: 200 })
      await waitFor(away, { what: 'the databases to leave', deadlineMs })
      const before = clients.map(({ written }) => written)
      await waitFor(() => clients.every(({ written }, index) => written > (before[index] ?? 0) + 10), {
        what: 'writes at the new home',
      })
      for (const client of clients) await client.stop()
      if (DRAINED > 3) console.log(drainReport(clients))
      expect(clients.filter(({ connects, errors }) => connects > 2 || errors.length > 0)).toEqual([])
      for (const [index, { rest_token }] of made.entries()) {
        const { body } = await b.rest(rest_token, ['GET', 'count'])
        expect(body).toEqual({ result: String(clients[index]?.written) })
      }
      await waitFor(async () => ((await readdir(join(a.place.dataDir, 'databases'))).length === 0 ? true : undefined), {
        what: 'the old files to be set aside',
      })
      await a.stop()
      expect(await b.api('DELETE', '/v2/nodes/a')).toMatchObject({ status: 200 })

      // A node that stops is not drained: it stays the home, and is not forgotten.
      a = await startNode('a', a.place)
      await meet()
      expect(await move(b, made[0]?.database_id ?? '', 'a')).toMatchObject({ state: 'done', problem: '' })
      await a.stop()
      expect(await b.api('DELETE', '/v2/nodes/a')).toMatchObject({
        status: 409,
        body: { error: expect.stringContaining('is the home of 1 database') },
      })
    },
    90_000 + DRAINED * 10_000,
  )
})
