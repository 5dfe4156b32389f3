import { existsSync, readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as tlsConnect } from 'node:tls'
import { Redis } from '@upstash/redis'
import { Redis as RedisClient } from 'iovalkey'
import { beforeAll, describe, expect, it } from 'vitest'
import type { BackupRecord } from '../../src/contract/databases/backups.js'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { ObjectServer } from '../../src/objects/testing/object-server.js'
import { type Answer, atCleanup, call, freePort, newPlace, type Place, tempDir, waitFor } from '../support/index.js'
import { authorization, makeNodeStore, startNode, type TestNode } from './test-node.js'

/** Databases of a cluster: each is served by one node, and every node answers for all of them. */

/** Each node listens on an address of its own, so that all can listen on the port of every database. */
const HOSTS = { a: '127.0.0.2', b: '127.0.0.3', c: '127.0.0.4' } as const
const REGIONS = { a: 'eu-west-1', b: 'us-east-1', c: 'us-west-2' } as const
type Name = keyof typeof HOSTS

type NodePlace = Place & { readonly redisDomainPort: number }

let places: Readonly<Record<Name, NodePlace>>
let objects: ObjectServer
let a: TestNode
let b: TestNode
let c: TestNode
/** Made by a server that was alone, and became the node `a`. */
let old: Made

beforeAll(async () => {
  await makeNodeStore()
  objects = await ObjectServer.start()
  atCleanup(() => objects.stop())
  places = { a: await nodePlace(), b: await nodePlace(), c: await nodePlace() }
  const alone = await startNode(undefined, places.a, optionsOf('a'), objects.credentials.environment)
  old = record(await alone.api('POST', '/v2/redis/database', creation('old')))
  await rest(alone, old.rest_token, ['SET', 'k', 'before'])
  await alone.stop()
  a = await start('a')
  b = await start('b')
  c = await start('c')
  await waitFor(async () => (await Promise.all([a, b, c].map(knowsAll))).every(Boolean), {
    what: 'the nodes to know each other',
  })
})

const nodePlace = async (): Promise<NodePlace> => ({
  ...(await newPlace({ dataDir: tempDir() })),
  redisDomainPort: await freePort(),
})
const optionsOf = (name: Name) => ({
  host: HOSTS[name],
  redisDomain: 'db.localhost',
  redisTlsByDefault: 'false',
  backups: 's3://homeport/nodes',
  backupsEndpoint: objects.endpoint,
})
const start = (name: Name) =>
  startNode(name, places[name], { ...optionsOf(name), region: REGIONS[name] }, objects.credentials.environment)

const listed = async (node: TestNode) => (await node.api('GET', '/v2/nodes')).body as Record<string, unknown>[]
const knowsAll = async (node: TestNode) => (await listed(node)).filter((one) => 'engine_memory' in one).length === 3

/** The bodies that this test reads. */
type Made = DatabaseRecord & Record<'rest_token' | 'password', string>
const record = ({ body }: Answer) => body as Made
const records = ({ body }: Answer) => body as DatabaseRecord[]

const creation = (name: string, at: Name = 'b') => ({
  database_name: name,
  platform: 'aws',
  primary_region: REGIONS[at],
  plan: 'payg',
})

async function rest(node: TestNode, token: string, command: readonly string[]): Promise<unknown> {
  const url = `http://${node.host}:${node.place.restPort}/`
  const headers = { authorization: `Bearer ${token}` }
  return (await call(url, { method: 'POST', json: command, headers })).body
}

/** The first line that a server sends to a client that sends nothing. */
const firstLine = (host: string, port: number): Promise<string> => textOf(connect(port, host))

const textOf = (socket: Socket): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    socket.once('end', () => resolve(text)).once('error', reject)
  })

const isListening = (port: number, host = '127.0.0.1'): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, host)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

/** @param retryMs how long to wait before the next connection. Default: there is none. */
function connectTo(host: string, { port, password }: Made, retryMs: () => number | null = () => null): RedisClient {
  const redis = new RedisClient({ host, port, password, retryStrategy: retryMs })
  redis.on('error', () => undefined)
  atCleanup(() => redis.disconnect())
  return redis
}

describe('databases of a cluster', () => {
  it('are served by one node, and answered for by all', async () => {
    expect(await rest(a, old.rest_token, ['GET', 'k'])).toEqual({ result: 'before' })

    const key = { 'idempotency-key': 'one' }
    const made = record(await b.api('POST', '/v2/redis/database', creation('new'), key))
    const path = `/v2/redis/database/${made.database_id}`
    expect(await rest(b, made.rest_token, ['SET', 'k', 'v'])).toEqual({ result: 'OK' })
    expect(await isListening(made.port, b.host)).toBe(true)

    // The same creation at another node is answered by the home.
    const repeated = record(await a.api('POST', '/v2/redis/database', creation('new'), key))
    expect(repeated).toMatchObject({ database_id: made.database_id })
    expect((await a.api('GET', path)).body).toMatchObject({ port: made.port, rest_url: made.rest_url, state: 'active' })
    const renamed = await a.api('POST', `/v2/redis/rename/${made.database_id}`, { name: 'renamed' })
    expect(renamed).toMatchObject({ status: 200, body: { database_name: 'renamed' } })
    expect(await a.api('POST', `/v2/redis/create-backup/${made.database_id}`, { name: 'first' })).toMatchObject({
      status: 200,
      body: 'OK',
    })
    const [backup] = (await a.api('GET', `/v2/redis/list-backup/${made.database_id}`)).body as { backup_id: string }[]
    const download = `/v2/redis/download-backup/${made.database_id}/${backup?.backup_id}`
    const file = await fetch(`http://${a.host}:${a.place.apiPort}${download}`, { headers: { authorization } })
    const snapshot = await file.arrayBuffer()
    expect(Buffer.from(snapshot).subarray(0, 5).toString()).toBe('REDIS')
    expect(await rest(b, made.rest_token, ['SET', 'k', 'later'])).toEqual({ result: 'OK' })
    const upload = await fetch(`http://${a.host}:${a.place.apiPort}/v2/redis/import-rdb/${made.database_id}`, {
      method: 'POST',
      body: snapshot,
      headers: { authorization },
    })
    expect(upload.status).toBe(200)
    expect(await rest(b, made.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })
    expect((await a.api('GET', `/v2/redis/stats/${made.database_id}`)).status).toBe(200)
    expect((await a.api('POST', `/v2/redis/rename/${made.database_id}`, { name: '' })).status).toBe(400)
    expect(
      (await a.api('POST', '/v2/redis/move-to-team', { database_id: made.database_id, team_id: 'x' })).status,
    ).toBe((await b.api('POST', '/v2/redis/move-to-team', { database_id: made.database_id, team_id: 'x' })).status)

    for (const node of [a, b]) {
      const shown = records(await node.api('GET', '/v2/redis/databases'))
      expect(shown.map(({ database_id, rest_url, state }) => [database_id, rest_url, state])).toEqual([
        [old.database_id, old.rest_url, 'active'],
        [made.database_id, made.rest_url, 'active'],
      ])
      expect((await node.api('GET', '/v2/console/databases')).body).toMatchObject({ matched: 2 })
      const overview = (await node.api('GET', '/v2/console/overview')).body
      expect(overview).toMatchObject({ databases: { active: 2 } })
      const usage = (await node.api('GET', '/v2/console/usage')).body as { database_id: string; requests: number }[]
      expect(new Set(usage.map(({ database_id }) => database_id))).toEqual(new Set([old.database_id, made.database_id]))
      expect(usage.every(({ requests }) => requests > 0)).toBe(true)
      expect((await node.api('POST', `/v2/redis/enable-prodpack/${made.database_id}`)).status).toBe(200)
      const scrape = `http://${node.host}:${node.place.apiPort}/metrics/databases/${made.database_id}`
      expect((await fetch(scrape, { headers: { authorization } })).status).toBe(200)
    }

    // An account is deleted with its databases on other nodes.
    const account = (await a.api('POST', '/v2/accounts', { email: 'tenant@localhost', account_type: 'paid' })).body as {
      account_id: string
      api_key: string
    }
    const tenant = { authorization: `Basic ${Buffer.from(`tenant@localhost:${account.api_key}`).toString('base64')}` }
    const theirs = record(await b.api('POST', '/v2/redis/database', creation('theirs'), tenant))
    expect((await a.api('GET', `/v2/redis/database/${theirs.database_id}`)).status).toBe(404)
    expect((await a.api('GET', `/v2/redis/database/${theirs.database_id}`, undefined, tenant)).status).toBe(200)
    expect(await a.api('DELETE', `/v2/accounts/${account.account_id}`)).toMatchObject({ status: 200 })
    expect(await isListening(theirs.port, b.host)).toBe(false)

    expect((await a.api('DELETE', path)).body).toBe('OK')
    expect((await b.api('GET', path)).status).toBe(404)
    expect((await a.api('GET', '/v2/redis/databases')).body).toHaveLength(1)
  })

  it('are created where their region is', async () => {
    // The node that is asked passes the creation on to one of the region.
    const far = creation('far', 'c')
    const key = { 'idempotency-key': 'far' }
    const both = await Promise.all([
      a.api('POST', '/v2/redis/database', far, key),
      c.api('POST', '/v2/redis/database', far, key),
    ])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    const [made, same] = both.map(record)
    expect(same).toMatchObject({ database_id: made?.database_id, rest_url: made?.rest_url, port: made?.port })
    expect(await listed(a)).toMatchObject([
      { name: 'a', region: 'eu-west-1', databases: 1, engine_memory: expect.any(Number) },
      { name: 'b', region: 'us-east-1', databases: 0, engine_memory: expect.any(Number) },
      { name: 'c', region: 'us-west-2', databases: 1, engine_memory: expect.any(Number) },
    ])

    // A region without a node is refused, and the regions that have one are named.
    const refused = (names: string) => ({ status: 400, body: { error: expect.stringContaining(names) } })
    const wrong = { ...creation('x'), primary_region: 'sa-east-1' }
    expect(await a.api('POST', '/v2/redis/database', wrong)).toMatchObject(refused('eu-west-1. Choose'))
    const reads = { ...far, database_name: 'y', read_regions: ['ap-south-1'] }
    expect(await a.api('POST', '/v2/redis/database', reads)).toMatchObject(refused('"ap-south-1"'))
    const change = { read_regions: ['ap-south-1'] }
    const path = `/v2/redis/update-regions/${made?.database_id}`
    expect(await a.api('POST', path, change)).toMatchObject(refused('"ap-south-1"'))
    expect((await a.api('GET', '/v2/console/settings')).body).toMatchObject({
      regions: expect.arrayContaining(['us-west-2', 'eu-west-1']),
    })

    // A drained node gets no new database.
    expect((await a.api('DELETE', `/v2/redis/database/${made?.database_id}`)).body).toBe('OK')
    expect(await a.api('POST', '/v2/nodes/c/drain')).toMatchObject({ status: 200 })
    const drained = async () =>
      (await a.api('POST', '/v2/redis/database', { ...far, database_name: 'z' })).status === 503
    await waitFor(drained, { what: 'the node to be drained' })
    expect(await a.api('POST', '/v2/nodes/c/resume')).toMatchObject({ status: 200 })
  })

  it('are reached at their port on every node', async () => {
    const made = record(await a.api('POST', '/v2/redis/database', creation('far')))
    const client = (host: string) => connectTo(host, made)
    const far = client(HOSTS.a)
    expect(await far.set('k', 'v')).toBe('OK')
    expect(await client(HOSTS.b).get('k')).toBe('v')
    expect(await far.client('LIST')).toMatch(/addr=127\.0\.0\.\d:\d{4,5} laddr=127\.0\.0\.3:/)
    const large = 'x'.repeat(5_000_000)
    expect(await far.set('large', large)).toBe('OK')
    expect(await far.get('large')).toBe(large)
    expect(await Promise.all(Array.from({ length: 1_000 }, () => far.incr('n')))).toHaveLength(1_000)

    // The home knows the address of the client, and refuses a client that the allow list excludes with that address.
    const path = `/v2/redis/update-allowlist/${made.database_id}`
    expect(await a.api('POST', path, { allowed_ips: ['10.9.8.7'] })).toMatchObject({ status: 200 })
    await waitFor(() => far.status === 'end', { what: 'the client to be disconnected' })
    expect(await firstLine(HOSTS.a, made.port)).toMatch(/^-.*127\.0\.0\.\d/)
    expect(await a.api('POST', path, { allowed_ips: [] })).toMatchObject({ status: 200 })
    expect(await client(HOSTS.a).get('n')).toBe('1000')

    // A port is closed on every node when its database is deleted.
    expect((await a.api('DELETE', `/v2/redis/database/${made.database_id}`)).body).toBe('OK')
    expect(await isListening(made.port, HOSTS.a)).toBe(false)
  })

  it('serve clients that connect to any node', async () => {
    const made = record(await b.api('POST', '/v2/redis/database', { ...creation('far-tls'), tls: true }))

    // REST: every node finds the database by the token.
    const url = `http://${a.host}:${a.place.restPort}`
    const redis = new Redis({ url, token: made.rest_token })
    expect(await redis.set('k', 'v')).toBe('OK')
    expect(await rest(b, made.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })
    expect(await redis.pipeline().incr('n').get('k').exec()).toEqual([1, 'v'])
    const large = 'x'.repeat(5_000_000)
    await redis.set('large', large)
    expect((await redis.get<string>('large'))?.length).toBe(large.length)
    expect((await fetch(`${url}/get/k?_token=${made.rest_token}`)).status).toBe(200)
    expect(await rest(a, made.rest_token, ['NOSUCH'])).toEqual({ error: expect.stringMatching(/^ERR /) })

    // An event stream arrives event by event, and ends when its client leaves.
    const messages: unknown[] = []
    const subscriber = redis.subscribe<string>(['news'])
    subscriber.on('message', ({ message }) => messages.push(message))
    await waitFor(async () => (await redis.publish('news', 'hello')) > 0, { what: 'the subscription' })
    await waitFor(() => messages.length > 0, { what: 'the message' })
    await subscriber.unsubscribe()
    await waitFor(async () => (await redis.publish('news', 'bye')) === 0, { what: 'the subscription to end' })

    // This node refuses a token that no node knows; the home refuses a token that was reset.
    const wrong = await call(`${url}/get/k`, { headers: { authorization: 'Bearer wrong' } })
    expect(wrong).toMatchObject({ status: 401, body: { error: 'WRONGPASS invalid or missing auth token' } })
    const reset = record(await a.api('POST', `/v2/redis/reset-password/${made.database_id}`))
    expect(await rest(a, made.rest_token, ['GET', 'k'])).toEqual({ error: 'WRONGPASS invalid or missing auth token' })
    expect(await rest(a, reset.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })

    // TLS: the server name decides. This node passes the bytes on unread; the home knows the address of the client.
    const client = new RedisClient({
      host: a.host,
      port: places.a.redisDomainPort,
      password: reset.password,
      tls: { servername: made.endpoint, rejectUnauthorized: false },
    })
    atCleanup(() => client.disconnect())
    expect(await client.get('k')).toBe('v')
    expect(await client.set('big', large)).toBe('OK')
    expect(await client.strlen('big')).toBe(large.length)
    expect(await client.client('INFO')).toContain('addr=127.0.0.1:')
    const range = { allowed_ips: ['10.9.8.7'] }
    expect((await a.api('POST', `/v2/redis/update-allowlist/${made.database_id}`, range)).status).toBe(200)
    expect(await rest(a, reset.rest_token, ['GET', 'k'])).toEqual({ error: expect.stringContaining('127.0.0.1') })
    client.disconnect()
  })

  it('are away with their home, come back with it, and are recovered from object storage at another node', async () => {
    const make = async (name: string, some: object = {}) =>
      record(await b.api('POST', '/v2/redis/database', { ...creation(name), ...some }))
    const [kept, secure, lost] = [await make('kept'), await make('secure', { tls: true }), await make('lost')]
    const pathOf = ({ database_id }: Made) => `/v2/redis/database/${database_id}`
    for (const { rest_token } of [kept, lost]) await rest(b, rest_token, ['SET', 'k', 'saved'])
    expect((await c.api('POST', `/v2/redis/create-backup/${lost.database_id}`, { name: 'kept' })).body).toBe('OK')
    const list = `/v2/redis/list-backup/${lost.database_id}`
    const isStored = async () => ((await c.api('GET', list)).body as BackupRecord[])[0]?.storage?.state === 'stored'
    await waitFor(isStored, { what: 'the upload' })
    expect(await rest(a, lost.rest_token, ['SET', 'k', 'too late'])).toEqual({ result: 'OK' })
    const recover = () => a.api('POST', `/v2/redis/recover/${lost.database_id}`, { node: 'c' })
    expect(await recover()).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('The node b is running and serves') },
    })

    // While the home is away, its clients get an error that says so, over every protocol: never that their token is wrong,
    // although this node has just searched in vain for a wrong token.
    expect(await rest(a, 'wrong', ['GET', 'k'])).toEqual({ error: expect.stringMatching(/^WRONGPASS/) })
    await b.stop()
    await waitFor(async () => (await a.api('GET', pathOf(kept))).status === 503, { what: 'the home to be away' })
    const isAway = expect.stringContaining('The node b must handle')
    expect((await a.api('GET', pathOf(kept))).body).toMatchObject({ error: isAway })
    const listedIds = records(await a.api('GET', '/v2/redis/databases')).map(({ database_id }) => database_id)
    expect(listedIds).toContain(kept.database_id)
    expect(await rest(a, kept.rest_token, ['GET', 'k'])).toEqual({ error: isAway })
    await waitFor(async () => (await firstLine(a.host, kept.port)).includes('The node b must handle'), {
      what: 'the port to say so',
    })
    const name = { servername: secure.endpoint, rejectUnauthorized: false }
    expect(await textOf(tlsConnect({ host: a.host, port: places.a.redisDomainPort, ...name }))).toEqual(isAway)

    const done = await waitFor(
      async () => {
        const answer = await recover()
        return answer.status === 409 ? undefined : answer
      },
      { what: 'the node to be gone' },
    )
    expect(done).toMatchObject({ status: 200, body: { from_node: 'b', node: 'c', database_id: lost.database_id } })
    expect(await rest(a, lost.rest_token, ['GET', 'k'])).toEqual({ result: 'saved' })
    expect(await rest(c, lost.rest_token, ['SET', 'k', 'new'])).toEqual({ result: 'OK' })
    expect((await a.api('GET', pathOf(lost))).body).toMatchObject({ port: lost.port, modifying_state: '' })
    expect(JSON.stringify((await c.api('GET', '/v2/auditlogs?limit=50')).body)).toContain('from_node')

    // The restarted home finds its data, and does not serve the database that has another home now.
    b = await start('b')
    await waitFor(async () => (await a.api('GET', pathOf(kept))).status === 200, { what: 'the home to be back' })
    const served = connectTo(a.host, kept, () => 100)
    await waitFor(async () => (await served.get('k')) === 'saved', { what: 'the port to pass commands on again' })
    await waitFor(async () => (await b.api('GET', pathOf(lost))).status === 200, {
      what: 'the home to know the others',
    })
    expect(await rest(b, lost.rest_token, ['GET', 'k'])).toEqual({ result: 'new' })
    const { dataDir } = b.place
    expect(existsSync(join(dataDir, 'databases', lost.database_id))).toBe(false)
    const [aside] = readdirSync(join(dataDir, 'set-aside'))
    const files = { node: 'b', path: `set-aside/${aside}`, bytes: expect.any(Number), taken_at: expect.any(Number) }
    const shown = (await b.api('GET', pathOf(lost))).body as DatabaseRecord
    expect(shown.set_aside).toEqual([files])
    expect(shown.set_aside?.[0]?.bytes).toBeGreaterThan(100)
    expect(JSON.stringify((await c.api('GET', '/v2/auditlogs?limit=50')).body)).toContain('Set Aside Database Files')
  })

  it('of a node that is given up can be deleted at any other one, and are served when it comes back', async () => {
    const make = async (name: string) => record(await b.api('POST', '/v2/redis/database', creation(name)))
    const [left, deleted] = [await make('left'), await make('deleted')]
    await rest(b, left.rest_token, ['SET', 'k', 'v'])
    const remove = (query = '') => a.api('DELETE', `/v2/nodes/b${query}`)
    const destroy = ({ database_id }: Made) => a.api('DELETE', `/v2/redis/database/${database_id}`)
    expect(await remove('?lose_databases=true')).toMatchObject({ status: 409 })
    await b.stop()
    const isRefused = async () => JSON.stringify((await remove()).body).includes('--lose-databases')
    await waitFor(isRefused, { what: 'the node to have left' })
    expect(await destroy(deleted)).toMatchObject({ status: 503 })

    expect(await remove('?lose_databases=true')).toMatchObject({ status: 200, body: 'OK' })
    expect((await listed(a)).map(({ name }) => name)).toEqual(['a', 'c'])
    expect(JSON.stringify((await c.api('GET', '/v2/auditlogs?limit=50')).body)).toContain('Lose Database Node')
    expect(await destroy(deleted)).toMatchObject({ status: 200, body: 'OK' })
    expect(records(await c.api('GET', '/v2/redis/databases')).map(({ database_name }) => database_name)).toEqual(
      expect.not.arrayContaining(['deleted']),
    )
    expect(await a.api('GET', `/v2/redis/database/${left.database_id}`)).toMatchObject({ status: 503 })

    b = await start('b')
    expect(await rest(b, left.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })
    const inQuarantine = (await b.api('GET', '/v2/redis/quarantine')).body as { database_id: string }[]
    expect(inQuarantine.map(({ database_id }) => database_id)).toContain(deleted.database_id)
  })
})
