import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Redis as RestClient } from '@upstash/redis'
import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  basicOf,
  enginesIn,
  isPortFree,
  processesMarked,
  type RunningHomeport,
  run,
  smallDisk,
  startHomeport,
  waitFor,
} from '../support/index.js'

/** The fields of a record that these tests use. */
interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
  readonly rest_token: string
  readonly read_only_rest_token: string
  readonly rest_url: string
  readonly modifying_state: string
}

const least = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
const ofDatabase = (server: RunningHomeport, { database_id }: Database) =>
  processesMarked(join(server.place.dataDir, 'databases', database_id))

async function create(server: RunningHomeport, some: object = {}): Promise<Database> {
  const { status, body } = await server.api('POST', '/v2/redis/database', { ...least, ...some })
  expect(body).not.toHaveProperty('error')
  expect(status).toBe(200)
  return body as Database
}

function connect({ port, password }: Database, username?: string, secret = password): Redis {
  const login = { password: secret, ...(username === undefined ? {} : { username }) }
  const client = new Redis({ host: '127.0.0.1', port, ...login, retryStrategy: () => null })
  client.on('error', () => undefined)
  onTestFinished(() => client.disconnect())
  return client
}

const restOf = ({ rest_url, rest_token }: Database) => new RestClient({ url: rest_url, token: rest_token })

describe('a database', () => {
  let server: RunningHomeport

  beforeAll(async () => {
    server = await startHomeport()
  })

  it('answers the first command of redis-cli, iovalkey and @upstash/redis as soon as it is created', async () => {
    const database = await create(server)
    const cli = ['-p', String(database.port), '--no-auth-warning', '-a', database.password]
    expect((await run('redis-cli', [...cli, 'SET', 'k', 'v'])).stdout).toBe('OK\n')
    expect(await connect(database).get('k')).toBe('v')
    expect(await connect(database, 'default', database.rest_token).get('k')).toBe('v')
    expect(await restOf(database).get('k')).toBe('v')
  })

  it('lets its read-only user read and nothing else, over both protocols', async () => {
    const database = await create(server)
    await connect(database).set('k', 'v')
    const reader = connect(database, 'default_ro', database.read_only_rest_token)
    expect(await reader.get('k')).toBe('v')
    await expect(reader.set('k', 'w')).rejects.toThrow('NOPERM')
    const rest = restOf({ ...database, rest_token: database.read_only_rest_token })
    expect(await rest.get('k')).toBe('v')
    await expect(rest.set('k', 'w')).rejects.toThrow('NOPERM')
  })

  it('refuses a wrong password and the secrets of another database', async () => {
    const [one, other] = [await create(server), await create(server)]
    for (const secret of ['wrong', '', other.password, one.read_only_rest_token]) {
      await expect(connect(one, 'default', secret).get('k')).rejects.toThrow(/WRONGPASS|NOAUTH|closed/)
    }
    await expect(restOf({ ...one, rest_token: 'wrong' }).get('k')).rejects.toThrow('WRONGPASS')
  })

  it('speaks TLS from the start when it is created with TLS', async () => {
    const { port, password } = await create(server, { tls: true })
    const ca = readFileSync(join(server.place.dataDir, 'tls', 'ca.crt'), 'utf8')
    const tls = { ca, servername: 'localhost' }
    const client = new Redis({ host: '127.0.0.1', port, password, tls, retryStrategy: () => null })
    onTestFinished(() => client.disconnect())
    expect(await client.ping()).toBe('PONG')
  })

  it('is gone after its deletion: no port, process, file, or token', async () => {
    const database = await create(server, { read_regions: ['eu-west-1'] })
    const client = connect(database)
    await client.set('k', 'v')
    expect(ofDatabase(server, database)).toHaveLength(2)
    const { status, body } = await server.api('DELETE', `/v2/redis/database/${database.database_id}`)
    expect([status, body]).toEqual([200, 'OK'])
    expect(await isPortFree(database.port)).toBe(true)
    expect(ofDatabase(server, database)).toEqual([])
    expect(readdirSync(join(server.place.dataDir, 'databases'))).not.toContain(database.database_id)
    await expect(restOf(database).get('k')).rejects.toThrow('WRONGPASS')
    await expect(client.get('k')).rejects.toThrow()
  })

  it('comes back with its data when its engine is killed', async () => {
    const database = await create(server)
    const client = connect(database)
    await client.set('k', 'v')
    const aofSynced = async () => /aof_pending_bio_fsync:0/.test(String(await client.info('persistence')))
    await waitFor(aofSynced, { what: 'the log of the engine to be on disk' })
    for (const { pid } of ofDatabase(server, database)) process.kill(pid, 'SIGKILL')
    await waitFor(async () => (await connect(database).get('k')) === 'v', { what: 'the database to come back' })
  })

  it('is back at once when its server is killed, and nothing is left of unfinished creations and deletions', async () => {
    const databases = await Promise.all([1, 2, 3].map((index) => create(server, { database_name: `db-${index}` })))
    for (const database of databases) await connect(database).set('k', database.database_id)
    const going = await create(server)
    const before = databases.flatMap((database) => ofDatabase(server, database)).map(({ pid }) => pid)
    const headers = {
      'idempotency-key': 'once',
      authorization: basicOf(server.credentials.email, server.credentials.apiKey),
    }
    const post = () =>
      fetch(`${server.apiUrl}/v2/redis/database`, { method: 'POST', headers, body: JSON.stringify(least) })
    const pending = [post(), server.api('DELETE', `/v2/redis/database/${going.database_id}`)]
    const many = Array.from({ length: 4 }, () => server.api('POST', '/v2/redis/database', least))
    const answers = Promise.allSettled([...pending, ...many])
    await Promise.race([...pending, ...many])
    await server.kill('SIGKILL')
    const acknowledged = (await answers).slice(2).flatMap((answer) => okRecord(answer))

    server = await startHomeport(server.place)
    for (const database of databases) {
      expect(await connect(database).get('k')).toBe(database.database_id)
      expect(ofDatabase(server, database)).toHaveLength(1)
    }
    const listed = (await server.api('GET', '/v2/redis/databases')).body as Database[]
    expect(listed).toEqual(expect.arrayContaining(databases))
    const after = databases.flatMap((database) => ofDatabase(server, database)).map(({ pid }) => pid)
    expect(after.filter((pid) => before.includes(pid))).toEqual([])
    for (const { port } of databases) expect(await isPortFree(port)).toBe(false)

    expect(listed.filter(({ modifying_state }) => modifying_state !== '')).toEqual([])
    const ids = listed.map((database) => database.database_id)
    for (const { database_id } of acknowledged) expect(ids).toContain(database_id)
    const directories = readdirSync(join(server.place.dataDir, 'databases'))
    expect(directories.sort()).toEqual([...ids].sort())
    const [one, two] = await Promise.all([await post(), await post()].map((response) => response.json()))
    expect(one).toEqual(two)
  })
})

function okRecord(settled: PromiseSettledResult<unknown>): Database[] {
  if (settled.status !== 'fulfilled') return []
  const { status, body } = settled.value as { status: number; body: Database }
  return status === 200 ? [body] : []
}

describe('a server without space on its disk', () => {
  it('takes no more data and no more databases, until there is space', async (context) => {
    const disk = smallDisk(context)
    const server = await startHomeport({ dataDir: join(disk, 'data') })
    const emptied = await create(server)
    const client = connect(emptied)
    const value = 'x'.repeat(100_000)
    const fill = async (key: number): Promise<string> => {
      const failed = await client.set(`key:${key}`, value).then(() => undefined, String)
      return failed ?? fill(key + 1)
    }
    expect(await fill(0)).toMatch(
      /MISCONF|The disk of the server is nearly full, so databases refuse writes that add data/,
    )
    const refused = async () => (await client.set('more', value).catch(String)).includes('nearly full')
    await waitFor(refused, { what: 'data to be refused with the reason' })
    expect(await client.get('key:0')).toBe(value)
    await waitFor(() => client.flushall().catch(() => undefined), { what: 'the deletion' })
    await waitFor(() => client.set('more', value).catch(() => undefined), { what: 'the space to be released' })

    // A creation is refused and leaves nothing.
    const filler = join(disk, 'filler')
    await run('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096'])
    const { status, body } = await server.api('POST', '/v2/redis/database', least)
    expect([status, body]).toEqual([503, { error: expect.stringContaining('The disk of the server is full') }])
    rmSync(filler)
    const listed = async () => (await server.api('GET', '/v2/redis/databases')).body as Database[]
    await waitFor(async () => (await listed()).length === 1, { what: 'the undoing' })
    expect(enginesIn(join(server.place.dataDir, 'databases'))).toHaveLength(1)
    expect(readdirSync(join(server.place.dataDir, 'databases'))).toEqual([emptied.database_id])
    const database = await create(server)
    const ids = [emptied, database].map(({ database_id }) => database_id)
    expect(readdirSync(join(server.place.dataDir, 'databases')).sort()).toEqual(ids.sort())
    expect(await connect(database).set('k', 'v')).toBe('OK')
  })
})
