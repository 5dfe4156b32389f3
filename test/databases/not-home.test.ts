import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from '@upstash/redis'
import { Redis as Client } from 'iovalkey'
import { beforeAll, expect, it } from 'vitest'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { DEFAULT_PLANS } from '../../src/contract/databases/plans.js'
import { atCleanup, tempDir, waitFor } from '../support/index.js'
import { makeNodeStore, nodePlace, startNode, type TestNode } from './test-node.js'

/** All clients connect to a node that is not the home of the database. */

const HOSTS = { near: '127.0.0.2', home: '127.0.0.3', leaving: '127.0.0.4' } as const
const PLANS = {
  payg: { ...DEFAULT_PLANS.payg, db_store_max_idle: 400_000_000 },
  fixed_250mb: {
    ...DEFAULT_PLANS.fixed_250mb,
    db_max_clients: 2,
    db_max_request_size: 100_000,
    db_max_entry_size: 50_000,
  },
}
let near: TestNode
let options: object

beforeAll(async () => {
  await makeNodeStore()
  const plansFile = join(tempDir(), 'plans.json')
  writeFileSync(plansFile, JSON.stringify(PLANS))
  options = { plansFile, freeAccountDatabases: '10' }
  near = await startNode('near', await nodePlace(), { ...options, host: HOSTS.near, region: 'us-east-1' })
  await startNode('home', await nodePlace(), { ...options, host: HOSTS.home, region: 'eu-west-1' })
  const knows = async () =>
    ((await near.api('GET', '/v2/nodes')).body as object[]).filter((one) => 'engine_memory' in one).length === 2
  await waitFor(knows, { what: 'the nodes to know each other' })
})

type Made = Required<DatabaseRecord>

async function create(some: object = {}): Promise<Made> {
  const body = { database_name: 'far', platform: 'aws', primary_region: 'eu-west-1', plan: 'payg', ...some }
  const { status, body: made } = await near.api('POST', '/v2/redis/database', body)
  expect([status, made]).toEqual([200, expect.objectContaining({ state: 'active' })])
  return made as Made
}

function connect(
  { port, password }: Made,
  options: { host?: string; username?: string; password?: string; tls?: object } = {},
): Client {
  const client = new Client({
    host: HOSTS.near,
    port,
    password,
    enableReadyCheck: false,
    retryStrategy: () => null,
    ...options,
  })
  client.on('error', () => undefined)
  atCleanup(() => client.disconnect())
  return client
}

const rest = ({ rest_token }: Made) =>
  new Redis({ url: `http://${HOSTS.near}:${near.place.restPort}`, token: rest_token, retry: false })

it('commands, transactions, scripts, blocking reads and subscriptions work at another node than the home', async () => {
  const made = await create()
  const [client, other] = [connect(made), connect(made)]
  expect(await client.multi().set('k', '1').incr('k').exec()).toEqual([
    [null, 'OK'],
    [null, 2],
  ])
  expect(await client.eval('return redis.call("INCRBY", KEYS[1], ARGV[1])', 1, 'k', '40')).toBe(42)
  const blocked = client.blpop('list', 0)
  await waitFor(async () => /cmd=blpop/i.test(String(await other.client('LIST'))), { what: 'the blocked client' })
  await other.rpush('list', 'x')
  expect(await blocked).toEqual(['list', 'x'])
  const messages: string[] = []
  client.on('message', (_, message: string) => messages.push(message))
  await client.subscribe('news')
  expect(await rest(made).publish('news', 'hello')).toBe(1)
  await waitFor(() => messages.includes('hello'), { what: 'the message' })
  client.disconnect()
  await waitFor(async () => (await rest(made).publish('news', 'bye')) === 0, { what: 'the subscription to end' })
})

it('TLS works on the port of the database at another node', async () => {
  const made = await create({ tls: true })
  const client = connect(made, { tls: { rejectUnauthorized: false } })
  expect(await client.set('k', 'v')).toBe('OK')
  expect(await client.get('k')).toBe('v')
  const clear = connect(made)
  await expect(clear.get('k')).rejects.toThrow()
})

it('users of a database log in at another node, with their rights', async () => {
  const made = await create()
  const password = 'Rather-Long-And-Various-42!'
  const owner = connect(made)
  const token = String(await owner.call('ACL', 'GENTOKEN', 'reader', password))
  expect(await owner.call('ACL', 'SETUSER', 'reader', 'on', `>${token}`, '~public:*', '+@read')).toBe('OK')
  await owner.set('public:k', 'v')
  const reader = connect(made, { username: 'reader', password })
  expect(await reader.get('public:k')).toBe('v')
  await expect(reader.set('public:k', 'w')).rejects.toThrow(/NOPERM/)
  await expect(reader.get('private')).rejects.toThrow(/NOPERM/)
  await expect(connect(made, { password: 'wrong' }).get('k')).rejects.toThrow()
  expect(await owner.call('ACL', 'DELUSER', 'reader')).toBe(1)
  await waitFor(() => reader.status === 'end', { what: 'the user to be disconnected' })
})

it('the home enforces the limits for clients of another node', async () => {
  const made = await create({ plan: 'fixed_250mb' })
  const [one, two] = [connect(made), connect(made)]
  await Promise.all([one.ping(), two.ping()])
  await expect(connect(made).ping()).rejects.toThrow()
  await expect(one.set('k', 'x'.repeat(60_000))).rejects.toThrow(/entry|size/i)
  await expect(rest(made).set('k', 'x'.repeat(150_000))).rejects.toThrow(/size|large|limit/i)
  two.disconnect()
  await waitFor(
    () =>
      connect(made)
        .ping()
        .then(
          () => true,
          () => false,
        ),
    { what: 'a free place for a client' },
  )
})

it('a database sleeps, and wakes for the next command at another node', async () => {
  const made = await create()
  const path = `/v2/redis/database/${made.database_id}`
  const client = connect(made)
  await client.set('k', 'v')
  const isAsleep = async () => ((await near.api('GET', path)).body as Made).state === 'passive'
  await waitFor(isAsleep, { what: 'the database to sleep' })
  expect(await client.get('k')).toBe('v')
  await waitFor(isAsleep, { what: 'the database to sleep again' })
  expect(await rest(made).get('k')).toBe('v')
})

it('backups, restores and new passwords work at another node', async () => {
  const made = await create()
  const client = connect(made)
  await client.set('k', 'before')
  const id = made.database_id
  expect((await near.api('POST', `/v2/redis/create-backup/${id}`, { name: 'first' })).body).toBe('OK')
  const [backup] = (await near.api('GET', `/v2/redis/list-backup/${id}`)).body as { backup_id: string }[]
  await client.set('k', 'after')
  const restore = await near.api('POST', `/v2/redis/restore-backup/${id}`, { backup_id: backup?.backup_id })
  expect(restore).toMatchObject({ status: 200, body: 'OK' })
  const again = connect(made)
  expect(await again.get('k')).toBe('before')
  expect((await near.api('POST', `/v2/redis/reset-password/${id}`)).status).toBe(200)
  await waitFor(() => again.status === 'end', { what: 'the old password to be of no use' })
})

it('a node that stops sends the replies that its clients wait for', async () => {
  const made = await create()
  const how = { ...options, host: HOSTS.leaving, region: 'us-east-1', shutdownGraceMs: '20000' }
  const leaving = await startNode('leaving', await nodePlace(), how)
  const [client, blocked, other] = [
    connect(made, { host: HOSTS.leaving }),
    connect(made, { host: HOSTS.leaving }),
    connect(made),
  ]
  const value = 'v'.repeat(2 ** 20)
  await client.set('k', value)
  const never = blocked.blpop('list', 0).then(
    () => 'a reply',
    () => 'the end',
  )
  await waitFor(async () => /cmd=blpop/i.test(String(await other.client('LIST'))), { what: 'the blocked client' })
  // Their commands arrive together, their replies over some time.
  const replies = Array.from({ length: 100 }, () => client.get('k'))
  await replies[0]
  const stopped = leaving.stop()
  expect((await Promise.all(replies)).every((reply) => reply === value)).toBe(true)
  expect(await never).toBe('the end')
  await stopped
  await waitFor(() => client.status === 'end', { what: 'the connection to end' })
})
