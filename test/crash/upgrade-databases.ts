import { Redis as RedisClient } from 'iovalkey'
import { pause, systemClock } from '../../src/base/index.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import type { DatabaseMove } from '../../src/contract/server/moves.js'
import type { ClusterNode } from '../../src/contract/server/nodes.js'
import type { DatabaseStandby } from '../../src/contract/server/standbys.js'
import { atCleanup, basicOf, call, waitFor } from '../support/index.js'
import { type Balancer, startBalancer } from './balancer.js'
import type { Callers } from './callers.js'
import type { NodeScene, SceneNode } from './nodes.js'

/**
 * Databases during an upgrade of the nodes: clients use them through every node, over REST behind a balancer and at their
 * ports. The databases move from node to node, there is one with a standby in each mode, and others are created and deleted.
 */

type Made = DatabaseRecord & Record<'rest_token' | 'password', string>

const REGION = 'us-east-1'
const MOVE_WITHIN_MS = 60_000
const DRAIN_WITHIN_MS = 120_000
/** Longer than a client of the Redis protocol goes without its database when the roles of nodes change. */
const RETRY_EVERY_MS = 50

/** A list of numbers in a database, and the numbers whose write was acknowledged. */
interface Written {
  readonly made: Made
  readonly key: string
  next: number
  readonly answered: number[]
}

/** What clients do to the databases. */
export class UpgradedDatabases {
  readonly #callers: Callers
  readonly #balancers: Readonly<Record<'api' | 'rest', Balancer>>
  readonly #authorization: string
  readonly #lists: Written[] = []
  readonly #made: readonly Made[]
  /** Moves that failed, and why. */
  readonly failedMoves: string[] = []
  moves = 0
  #isQuiet = false

  private constructor(
    scene: NodeScene,
    callers: Callers,
    balancers: Readonly<Record<'api' | 'rest', Balancer>>,
    made: readonly Made[],
  ) {
    this.#callers = callers
    this.#balancers = balancers
    this.#made = made
    this.#authorization = authorizationOf(scene)
  }

  /** Creates three databases: without a standby, with an asynchronous one, and with one that answers wait for. */
  static async begin(scene: NodeScene, callers: Callers): Promise<UpgradedDatabases> {
    const ready = (url: 'apiUrl' | 'restUrl') => () =>
      scene.nodes.filter(({ isReady }) => isReady).map(({ homeport }) => homeport[url])
    const balancers = { api: await startBalancer(ready('apiUrl')), rest: await startBalancer(ready('restUrl')) }
    atCleanup(() => balancers.api.close())
    atCleanup(() => balancers.rest.close())
    const made: Made[] = []
    for (const name of ['plain', 'guarded', 'replicated']) {
      const asked = { database_name: name, platform: 'aws', primary_region: REGION, plan: 'payg' }
      const init = { method: 'POST', json: asked, headers: { authorization: authorizationOf(scene) } }
      const created = async () => {
        const { status, body } = await call(`${balancers.api.url}/v2/redis/database`, init)
        if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
        return body as Made
      }
      made.push(await waitFor(created, { what: `the database ${name}` }))
    }
    const all = new UpgradedDatabases(scene, callers, balancers, made)
    for (const [index, mode] of [[1, 'async'] as const, [2, 'replicated'] as const]) {
      await all.#api('PUT', `/v2/node-standbys/${made[index]?.database_id}`, { mode })
    }
    await all.untilGuarded()
    return all
  }

  /** Resolves when the callers have ended. */
  run(): Promise<unknown> {
    const { repeat } = this.#callers
    const [plain] = this.#made
    return Promise.all([
      ...this.#made.flatMap((made) => [
        repeat(`REST ${made.database_name}`, this.#restWriter(made)),
        repeat(`Redis ${made.database_name}`, this.#redisWriter(made)),
      ]),
      repeat('list databases', () => this.#list()),
      repeat('rename', () => this.#rename(plain as Made)),
      repeat('create and delete', () => this.#comeAndGo(), Number.POSITIVE_INFINITY),
      repeat('move', () => this.#move()),
    ])
  }

  /** Lets other moves begin again after a drain. */
  resume(): void {
    this.#isQuiet = false
  }

  /** Resolves after this many further moves. */
  async untilMoved(more: number): Promise<void> {
    const before = this.moves
    await waitFor(() => this.moves >= before + more, { what: 'moves', deadlineMs: more * MOVE_WITHIN_MS })
  }

  /** Drains a node as an operator does, until it has neither partitions nor databases. No other moves begin from then on. */
  async drain({ name }: SceneNode): Promise<void> {
    this.#isQuiet = true
    await this.#untilNoMove()
    await this.#api('POST', `/v2/nodes/${name}/drain`)
    const isEmpty = async () => {
      const node = (await this.#nodes()).find((one) => one.name === name)
      return node?.partitions === 0 && node.databases === 0
    }
    await waitFor(isEmpty, { what: `${name} to be drained`, deadlineMs: DRAIN_WITHIN_MS })
  }

  async #untilNoMove(): Promise<void> {
    const isOpen = ({ state }: DatabaseMove): boolean => state === 'asked' || state === 'copying'
    const none = async () => !((await this.#api('GET', '/v2/node-moves')) as DatabaseMove[]).some(isOpen)
    await waitFor(none, { what: 'the moves to end', deadlineMs: MOVE_WITHIN_MS })
  }

  /** Resolves when every standby is complete. */
  async untilGuarded(): Promise<void> {
    const standbys = async () => (await this.#api('GET', '/v2/node-standbys')) as DatabaseStandby[]
    const now = Date.now()
    const isGuarded = async () =>
      (await standbys()).every(({ state, complete_until }) => state === 'following' && complete_until > now)
    await waitFor(isGuarded, { what: 'the standbys to be complete', deadlineMs: MOVE_WITHIN_MS }).catch(
      async (error) => {
        throw new Error(JSON.stringify(await standbys()), { cause: error })
      },
    )
  }

  /** Acknowledged writes that are missing. */
  async lost(): Promise<readonly string[]> {
    const lost: string[] = []
    for (const { made, key, answered } of this.#lists) {
      const { result } = (await this.#rest(made, ['LRANGE', key, '0', '-1'])) as { result: string[] }
      const stored = new Set(result.map(Number))
      for (const number of answered) if (!stored.has(number)) lost.push(`${made.database_name} ${key} ${number}`)
    }
    return lost
  }

  get summary(): string {
    const answered = this.#lists.map(({ made, key, answered }) => `${made.database_name} ${key} ${answered.length}`)
    return `${answered.join(', ')}; ${this.moves} moves, failed: ${JSON.stringify(this.failedMoves)}`
  }

  #restWriter(made: Made): () => Promise<void> {
    const list = this.#newList(made, 'rest')
    return async () => {
      const number = ++list.next
      await this.#rest(made, ['RPUSH', list.key, String(number)])
      list.answered.push(number)
    }
  }

  #redisWriter(made: Made): () => Promise<void> {
    const list = this.#newList(made, 'redis')
    const redis = new RedisClient({
      host: '127.0.0.1',
      port: made.port,
      password: made.password,
      retryStrategy: () => RETRY_EVERY_MS,
      maxRetriesPerRequest: null,
    })
    redis.on('error', () => undefined)
    atCleanup(() => redis.disconnect())
    return async () => {
      const number = ++list.next
      await redis.rpush(list.key, number)
      list.answered.push(number)
    }
  }

  #newList(made: Made, key: string): Written {
    const list = { made, key, next: 0, answered: [] }
    this.#lists.push(list)
    return list
  }

  async #rest({ rest_token }: Made, command: readonly string[]): Promise<unknown> {
    const headers = { authorization: `Bearer ${rest_token}` }
    const { status, body } = await call(`${this.#balancers.rest.url}/`, { method: 'POST', json: command, headers })
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    return body
  }

  async #api(method: string, path: string, json?: unknown): Promise<unknown> {
    const init = { method, headers: { authorization: this.#authorization }, ...(json !== undefined && { json }) }
    const { status, body } = await call(this.#balancers.api.url + path, init)
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
    return body
  }

  async #nodes(): Promise<readonly ClusterNode[]> {
    return (await this.#api('GET', '/v2/nodes')) as ClusterNode[]
  }

  async #list(): Promise<void> {
    const listed = (await this.#api('GET', '/v2/redis/databases')) as DatabaseRecord[]
    for (const { database_id } of this.#made) {
      if (!listed.some((one) => one.database_id === database_id)) throw new Error(`${database_id} is not listed`)
      await this.#api('GET', `/v2/redis/database/${database_id}`)
    }
  }

  async #rename({ database_id }: Made): Promise<void> {
    const path = `/v2/redis/rename/${database_id}`
    await this.#api('POST', path, { name: 'plain' }).catch(ignoreBusy)
  }

  async #comeAndGo(): Promise<void> {
    const asked = { database_name: `guest-${Date.now()}`, platform: 'aws', primary_region: REGION, plan: 'payg' }
    const made = (await this.#api('POST', '/v2/redis/database', asked)) as Made
    await this.#rest(made, ['SET', 'k', 'v'])
    const path = `/v2/redis/database/${made.database_id}`
    // A drain may be moving the database meanwhile, so the deletion is repeated.
    for (;;) {
      const result = await this.#api('DELETE', path).catch(ignoreBusy)
      if (result !== undefined) return
      await pause(systemClock, RETRY_EVERY_MS)
    }
  }

  async #move(): Promise<void> {
    if (this.#isQuiet) return pause(systemClock, RETRY_EVERY_MS)
    const { database_id: id, database_name: name } = this.#made[this.moves % this.#made.length] as Made
    const nodes = (await this.#nodes()).filter(({ state }) => state === 'live')
    const [{ name: to } = { name: '' }] = nodes.slice(this.moves % Math.max(1, nodes.length))
    const taken = await this.#api('POST', `/v2/nodes/${to}/databases`, { database_id: id }).catch((error: Error) => {
      if (/409|database_is_there/.test(error.message)) return undefined
      throw error
    })
    this.moves++
    if (taken === undefined) return
    const newest = async () =>
      ((await this.#api('GET', '/v2/node-moves')) as DatabaseMove[]).find((one) => one.database_id === id)
    const isOver = async () => ['done', 'failed', 'switched', 'aborted'].includes((await newest())?.state ?? '')
    await waitFor(isOver, { what: `the move of ${name} to ${to}`, deadlineMs: MOVE_WITHIN_MS })
    const { state, from, problem } = (await newest()) as DatabaseMove
    if (state === 'failed' || state === 'aborted') this.failedMoves.push(`${name} ${from} to ${to}: ${problem}`)
  }
}

const authorizationOf = ({ nodes }: NodeScene): string => {
  const { email = '', apiKey = '' } = nodes[0]?.homeport.credentials ?? {}
  return basicOf(email, apiKey)
}

/** Returns undefined for the error of a database that is being moved; throws any other error. */
function ignoreBusy(error: Error): undefined {
  if (!/database_busy|being changed|409/.test(error.message)) throw error
}
