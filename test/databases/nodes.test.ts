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
import { authorization, startNode, startNodeStore, type TestNode } from './test-node.js'

/** Databases of a cluster: each is served by one node, and every node answers for all of them. */

beforeAll(startNodeStore)

/** The answers that this test reads more of than a status. */
const record = ({ body }: Answer) => body as DatabaseRecord & Record<'rest_token', string>
const records = ({ body }: Answer) => body as DatabaseRecord[]

const place = () => newPlace({ dataDir: tempDir() })
const creation = (name: string) => ({ database_name: name, platform: 'aws', primary_region: 'us-east-1', plan: 'payg' })

async function rest(node: TestNode, token: string, command: readonly string[]): Promise<unknown> {
  const url = `http://127.0.0.1:${node.place.restPort}/`
  const headers = { authorization: `Bearer ${token}` }
  return (await call(url, { method: 'POST', json: command, headers })).body
}

/** What a server says by itself to a client. */
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

describe('databases of a cluster', () => {
  it('are served by one node, and answered for by all', async () => {
    const places = [await place(), await place()] as const
    const alone = await startNode(undefined, places[0])
    const old = record(await alone.api('POST', '/v2/redis/database', creation('old')))
    await rest(alone, old.rest_token, ['SET', 'k', 'before'])
    await alone.stop()

    const a = await startNode('a', places[0], { region: 'eu-west-1' })
    const b = await startNode('b', places[1], { region: 'us-east-1' })
    expect(await rest(a, old.rest_token, ['GET', 'k'])).toEqual({ result: 'before' })

    const key = { 'idempotency-key': 'one' }
    const made = record(await b.api('POST', '/v2/redis/database', creation('new'), key))
    const path = `/v2/redis/database/${made.database_id}`
    expect(await rest(b, made.rest_token, ['SET', 'k', 'v'])).toEqual({ result: 'OK' })
    expect(await isListening(made.port)).toBe(true)
    await waitFor(async () => (await a.api('GET', path)).status === 200, { what: 'the nodes to know each other' })

    // The same creation at another node is answered by the home.
    const repeated = record(await a.api('POST', '/v2/redis/database', creation('new'), key))
    expect(repeated).toMatchObject({ database_id: made.database_id })
    expect((await a.api('GET', path)).body).toMatchObject({ port: made.port, rest_url: made.rest_url, state: 'active' })
    const renamed = await a.api('POST', `/v2/redis/rename/${made.database_id}`, { name: 'renamed' })
    expect(renamed).toMatchObject({ status: 200, body: { database_name: 'renamed' } })
    expect(await a.api('POST', `/v2/redis/create-backup/${made.database_id}`, { name: 'first' })).toMatchObject({
      ...{ status: 200, body: 'OK' },
    })
    const [backup] = (await a.api('GET', `/v2/redis/list-backup/${made.database_id}`)).body as { backup_id: string }[]
    const download = `/v2/redis/download-backup/${made.database_id}/${backup?.backup_id}`
    const file = await fetch(`http://127.0.0.1:${a.place.apiPort}${download}`, { headers: { authorization } })
    const snapshot = await file.arrayBuffer()
    expect(Buffer.from(snapshot).subarray(0, 5).toString()).toBe('REDIS')
    expect(await rest(b, made.rest_token, ['SET', 'k', 'later'])).toEqual({ result: 'OK' })
    const upload = await fetch(`http://127.0.0.1:${a.place.apiPort}/v2/redis/import-rdb/${made.database_id}`, {
      ...{ method: 'POST', body: snapshot, headers: { authorization } },
    })
    expect(upload.status).toBe(200)
    expect(await rest(b, made.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })
    expect((await a.api('GET', `/v2/redis/stats/${made.database_id}`)).status).toBe(200)
    expect((await a.api('POST', `/v2/redis/rename/${made.database_id}`, { name: '' })).status).toBe(400)
    expect(
      (await a.api('POST', '/v2/redis/move-to-team', { database_id: made.database_id, team_id: 'x' })).status,
    ).toBe((await b.api('POST', '/v2/redis/move-to-team', { database_id: made.database_id, team_id: 'x' })).status)

    for (const node of [a, b]) {
      const listed = records(await node.api('GET', '/v2/redis/databases'))
      expect(listed.map(({ database_id, rest_url, state }) => [database_id, rest_url, state])).toEqual([
        [old.database_id, old.rest_url, 'active'],
        [made.database_id, made.rest_url, 'active'],
      ])
      expect((await node.api('GET', '/v2/console/databases')).body).toMatchObject({ matched: 2 })
      const overview = (await node.api('GET', '/v2/console/overview')).body
      expect(overview).toMatchObject({ databases: { active: 2 } })
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
    expect(await isListening(theirs.port)).toBe(false)

    // A new life of the home finds its data; the start of another node has touched nothing.
    await b.stop()
    await waitFor(async () => (await a.api('GET', path)).status === 503, { what: 'the home to be away' })
    expect((await a.api('GET', path)).body).toMatchObject({
      error: expect.stringContaining('The node b has to answer'),
    })
    expect((await a.api('GET', '/v2/redis/databases')).body).toHaveLength(2)
    const again = await startNode('b', places[1], { region: 'us-east-1' })
    expect(await rest(again, made.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })
    await waitFor(async () => (await a.api('GET', path)).status === 200, { what: 'the home to be back' })

    expect((await a.api('DELETE', path)).body).toBe('OK')
    expect((await again.api('GET', path)).status).toBe(404)
    expect((await a.api('GET', '/v2/redis/databases')).body).toHaveLength(1)
  })

  it('are created where their region is', async () => {
    const e = await startNode('e', await place(), { region: 'eu-west-1' })
    const f = await startNode('f', await place(), { region: 'us-west-2' })
    const listed = async (node: TestNode) => (await node.api('GET', '/v2/nodes')).body as Record<string, unknown>[]
    const isKnown = async () => (await listed(e)).every((one) => one.state !== 'live' || 'engine_memory' in one)
    await waitFor(isKnown, { what: 'the nodes to know each other' })

    // The node that is asked passes the creation on to one of the region.
    const far = { ...creation('far'), primary_region: 'us-west-2' }
    const key = { 'idempotency-key': 'far' }
    const both = await Promise.all([
      e.api('POST', '/v2/redis/database', far, key),
      f.api('POST', '/v2/redis/database', far, key),
    ])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    const [made, same] = both.map(record)
    expect(same).toMatchObject({ database_id: made?.database_id, rest_url: made?.rest_url, port: made?.port })
    expect((await listed(e)).filter(({ name }) => name === 'e' || name === 'f')).toMatchObject([
      { name: 'e', region: 'eu-west-1', databases: 0, engine_memory: 0 },
      { name: 'f', region: 'us-west-2', databases: 1, engine_memory: expect.any(Number) },
    ])

    // A region without a node is refused, and the regions that have one are named.
    const refused = (names: string) => ({ status: 400, body: { error: expect.stringContaining(names) } })
    const wrong = { ...creation('x'), primary_region: 'sa-east-1' }
    expect(await e.api('POST', '/v2/redis/database', wrong)).toMatchObject(refused('us-west-2, eu-west-1. Choose'))
    const reads = { ...far, database_name: 'y', read_regions: ['ap-south-1'] }
    expect(await e.api('POST', '/v2/redis/database', reads)).toMatchObject(refused('"ap-south-1"'))
    const change = { read_regions: ['ap-south-1'] }
    const path = `/v2/redis/update-regions/${made?.database_id}`
    expect(await e.api('POST', path, change)).toMatchObject(refused('"ap-south-1"'))
    expect((await e.api('GET', '/v2/console/settings')).body).toMatchObject({
      regions: expect.arrayContaining(['us-west-2', 'eu-west-1']),
    })

    // A node that is drained gets none.
    expect(await e.api('POST', '/v2/nodes/f/drain')).toMatchObject({ status: 200 })
    const drained = async () =>
      (await e.api('POST', '/v2/redis/database', { ...far, database_name: 'z' })).status === 503
    await waitFor(drained, { what: 'the node to be drained' })
  })

  it('are reached at their port on every node', async () => {
    const hosts = ['127.0.0.2', '127.0.0.3'] as const
    const [g, h] = await Promise.all([
      startNode('g', await place(), { host: hosts[0], region: 'ca-central-1' }),
      startNode('h', await place(), { host: hosts[1], region: 'sa-east-1' }),
    ])
    const isKnown = async () =>
      ((await g.api('GET', '/v2/nodes')).body as { name: string }[]).some(
        (one) => one.name === 'h' && 'engine_memory' in one,
      )
    await waitFor(isKnown, { what: 'the nodes to know each other' })
    const made = record(await g.api('POST', '/v2/redis/database', { ...creation('far'), primary_region: 'sa-east-1' }))
    const password = String((made as Record<string, unknown>).password)
    const client = (host: string, options = {}) => {
      const redis = new RedisClient({ host, port: made.port, password, retryStrategy: () => null, ...options })
      redis.on('error', () => undefined)
      atCleanup(() => redis.disconnect())
      return redis
    }
    const far = client(hosts[0])
    expect(await far.set('k', 'v')).toBe('OK')
    expect(await client(hosts[1]).get('k')).toBe('v')
    expect(await far.client('LIST')).toMatch(/addr=127\.0\.0\.\d:\d{4,5} laddr=127\.0\.0\.3:/)
    const large = 'x'.repeat(5_000_000)
    expect(await far.set('large', large)).toBe('OK')
    expect(await far.get('large')).toBe(large)
    expect(await Promise.all(Array.from({ length: 1_000 }, () => far.incr('n')))).toHaveLength(1_000)

    // The home knows the client's address, and a client that has no access hears so.
    const path = `/v2/redis/update-allowlist/${made.database_id}`
    expect(await g.api('POST', path, { allowed_ips: ['10.9.8.7'] })).toMatchObject({ status: 200 })
    await waitFor(() => far.status === 'end', { what: 'the client to be disconnected' })
    expect(await firstLine(hosts[0], made.port)).toMatch(/^-.*127\.0\.0\.\d/)
    expect(await g.api('POST', path, { allowed_ips: [] })).toMatchObject({ status: 200 })
    expect(await client(hosts[0]).get('n')).toBe('1000')

    // While the home is away, its clients get an error; when it is back, they are served again.
    await h.stop()
    await waitFor(async () => (await firstLine(hosts[0], made.port)).includes('The node h has to answer'), {
      what: 'the home to be away',
    })
    const again = await startNode('h', h.place, { host: hosts[1], region: 'sa-east-1' })
    await waitFor(
      () =>
        client(hosts[0])
          .get('k')
          .then(
            (value) => value === 'v',
            () => false,
          ),
      { what: 'the home to be back' },
    )

    // A port is closed on every node when its database is deleted.
    expect((await g.api('DELETE', `/v2/redis/database/${made.database_id}`)).body).toBe('OK')
    expect(await isListening(made.port, hosts[0])).toBe(false)
    await again.stop()
  })

  it('serve clients that connect to any node', async () => {
    const domain = { redisDomain: 'db.localhost' }
    const [portOfC, portOfD] = [await freePort(), await freePort()]
    const c = await startNode('c', await place(), { ...domain, region: 'eu-west-1', redisDomainPort: portOfC })
    const d = await startNode('d', await place(), { ...domain, region: 'us-east-1', redisDomainPort: portOfD })
    const made = record(await d.api('POST', '/v2/redis/database', { ...creation('far'), tls: true }))
    const path = `/v2/redis/database/${made.database_id}`
    await waitFor(async () => (await c.api('GET', path)).status === 200, { what: 'the nodes to know each other' })

    // REST: the token decides, on whichever node.
    const url = `http://127.0.0.1:${c.place.restPort}`
    const redis = new Redis({ url, token: made.rest_token })
    expect(await redis.set('k', 'v')).toBe('OK')
    expect(await rest(d, made.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })
    expect(await redis.pipeline().incr('n').get('k').exec()).toEqual([1, 'v'])
    const large = 'x'.repeat(5_000_000)
    await redis.set('large', large)
    expect((await redis.get<string>('large'))?.length).toBe(large.length)
    expect((await fetch(`${url}/get/k?_token=${made.rest_token}`)).status).toBe(200)
    expect(await rest(c, made.rest_token, ['NOSUCH'])).toEqual({ error: expect.stringMatching(/^ERR /) })

    // An event stream arrives event by event, and ends when its client leaves.
    const messages: unknown[] = []
    const subscriber = redis.subscribe<string>(['news'])
    subscriber.on('message', ({ message }) => messages.push(message))
    await waitFor(async () => (await redis.publish('news', 'hello')) > 0, { what: 'the subscription' })
    await waitFor(() => messages.length > 0, { what: 'the message' })
    await subscriber.unsubscribe()
    await waitFor(async () => (await redis.publish('news', 'bye')) === 0, { what: 'the subscription to end' })

    // What nobody knows is refused here; a reset token is refused by the home.
    const wrong = await call(`${url}/get/k`, { headers: { authorization: 'Bearer wrong' } })
    expect(wrong).toMatchObject({ status: 401, body: { error: 'WRONGPASS invalid or missing auth token' } })
    const reset = record(await c.api('POST', `/v2/redis/reset-password/${made.database_id}`))
    expect(await rest(c, made.rest_token, ['GET', 'k'])).toEqual({ error: 'WRONGPASS invalid or missing auth token' })
    expect(await rest(c, reset.rest_token, ['GET', 'k'])).toEqual({ result: 'v' })

    // TLS: the server name decides. The bytes go untouched to the home, which knows the client's address.
    const client = new RedisClient({
      ...{ host: '127.0.0.1', port: portOfC, password: String((reset as Record<string, unknown>).password) },
      tls: { servername: made.endpoint, rejectUnauthorized: false },
    })
    atCleanup(() => client.disconnect())
    expect(await client.get('k')).toBe('v')
    expect(await client.set('big', large)).toBe('OK')
    expect(await client.strlen('big')).toBe(large.length)
    expect(await client.client('INFO')).toContain('addr=127.0.0.1:')
    const range = { allowed_ips: ['10.9.8.7'] }
    expect((await c.api('POST', `/v2/redis/update-allowlist/${made.database_id}`, range)).status).toBe(200)
    expect(await rest(c, reset.rest_token, ['GET', 'k'])).toEqual({ error: expect.stringContaining('127.0.0.1') })

    // While the home is away, its clients hear so; they do not hear that their token is wrong.
    client.disconnect()
    await d.stop()
    await waitFor(async () => (await c.api('GET', path)).status === 503, { what: 'the home to be away' })
    expect(await rest(c, reset.rest_token, ['GET', 'k'])).toEqual({ error: expect.stringContaining('The node d has') })
    const overTls = tlsConnect({
      host: '127.0.0.1',
      port: portOfC,
      servername: made.endpoint,
      rejectUnauthorized: false,
    })
    expect(await textOf(overTls)).toContain('The node d has to answer')
  })

  it('are recovered from object storage at another node, and their old node does not serve them again', async () => {
    const objects = await ObjectServer.start()
    atCleanup(() => objects.stop())
    const { environment } = objects.credentials
    const start = (name: string, at: Place, region: string) => startNode(name, at, { ...storage, region }, environment)
    const storage = { backups: 's3://homeport/nodes', backupsEndpoint: objects.endpoint }
    const places = [await place(), await place(), await place()] as const
    const e = await start('h', places[0], 'us-east-1')
    const f = await start('i', places[1], 'us-west-1')
    const other = await start('j', places[2], 'us-west-1')
    const made = record(await e.api('POST', '/v2/redis/database', creation('lost')))
    const path = `/v2/redis/database/${made.database_id}`
    await waitFor(async () => (await f.api('GET', path)).status === 200, { what: 'the nodes to know each other' })
    await waitFor(async () => (await other.api('GET', path)).status === 200, { what: 'the third node to know them' })
    await rest(e, made.rest_token, ['SET', 'k', 'saved'])
    expect((await f.api('POST', `/v2/redis/create-backup/${made.database_id}`, { name: 'kept' })).body).toBe('OK')
    const list = `/v2/redis/list-backup/${made.database_id}`
    const isStored = async () => ((await f.api('GET', list)).body as BackupRecord[])[0]?.storage?.state === 'stored'
    await waitFor(isStored, { what: 'the upload' })
    expect(await rest(other, made.rest_token, ['SET', 'k', 'too late'])).toEqual({ result: 'OK' })

    const recover = `/v2/redis/recover/${made.database_id}`
    const early = await other.api('POST', recover, { node: 'i' })
    expect(early).toMatchObject({ status: 409, body: { error: expect.stringContaining('The node h serves') } })

    await e.stop()
    await waitFor(async () => (await f.api('GET', path)).status === 503, { what: 'the home to be away' })
    const done = await waitFor(
      async () => {
        const answer = await other.api('POST', recover, { node: 'i' })
        return answer.status === 409 ? undefined : answer
      },
      { what: 'the node to be gone' },
    )
    expect(done).toMatchObject({ status: 200, body: { from_node: 'h', node: 'i', database_id: made.database_id } })
    expect(await rest(other, made.rest_token, ['GET', 'k'])).toEqual({ result: 'saved' })
    expect(await rest(f, made.rest_token, ['SET', 'k', 'new'])).toEqual({ result: 'OK' })
    expect((await other.api('GET', path)).body).toMatchObject({ port: made.port, modifying_state: '' })
    const log = JSON.stringify((await f.api('GET', '/v2/auditlogs?limit=50')).body)
    expect(log).toContain('from_node')

    const back = await start('h', places[0], 'us-east-1')
    await waitFor(async () => (await back.api('GET', path)).status === 200, { what: 'the node to know the others' })
    expect(await rest(back, made.rest_token, ['GET', 'k'])).toEqual({ result: 'new' })
    expect(existsSync(join(places[0].dataDir, 'databases', made.database_id))).toBe(false)
    const [kept] = readdirSync(join(places[0].dataDir, 'set-aside'))
    const files = { node: 'h', path: `set-aside/${kept}`, bytes: expect.any(Number) }
    const shown = () => back.api('GET', path).then((answer) => (answer.body as DatabaseRecord).set_aside ?? [])
    expect(await shown()).toEqual([{ ...files, taken_at: expect.any(Number) }])
    expect((await shown())[0]?.bytes).toBeGreaterThan(100)
    expect(JSON.stringify((await f.api('GET', '/v2/auditlogs?limit=50')).body)).toContain('Set Aside Database Files')
  })
})
