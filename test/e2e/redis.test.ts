import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis as RestClient } from '@upstash/redis'
import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { snippetsOf } from '../../console/src/pages/databases/snippets.js'
import { basicOf, enginesIn, isPortFree, processesMarked, run, waitFor } from '../support/index.js'
import { connect, createDatabase, LEAST, type NewDatabase, restClient, useService } from './support/service.js'

/** Databases from a user's view: created over the API, used with the official clients. */

const service = useService()
let database: NewDatabase

beforeAll(async () => {
  database = await createDatabase(service, { read_regions: ['eu-west-1'] })
})

const folderOf = ({ database_id }: NewDatabase) => service.folderOf(database_id)
const enginesOf = (some: NewDatabase) => enginesIn(folderOf(some))

/** A connection to the engine of one region, without the data plane, which always asks the primary. */
function connectToMember(some: NewDatabase, region: string): Redis {
  const config = readFileSync(join(folderOf(some), region, 'engine.conf'), 'utf8')
  const path = /^unixsocket "?([^"\n]+)"?$/m.exec(config)?.[1]
  if (path === undefined) throw new Error(`no socket in the configuration of ${region}`)
  const client = new Redis({ path, password: some.password, retryStrategy: () => null })
  client.on('error', () => undefined)
  onTestFinished(() => client.disconnect())
  return client
}

/** Runs redis-cli against a database; returns its output. */
async function cli(some: NewDatabase, commands: readonly string[], password = some.password): Promise<string> {
  const args = ['-p', String(some.port), '--no-auth-warning', '-a', password]
  const { stdout, stderr } = await run('redis-cli', args, { input: `${commands.join('\n')}\n` })
  return stdout + stderr
}

describe('the API', () => {
  it('lists and reads a database, with and without its credentials', async () => {
    const { homeport } = service
    const path = `/v2/redis/database/${database.database_id}`
    expect((await homeport.api('GET', path)).body).toEqual(database)
    expect((await homeport.api('GET', '/v2/redis/databases')).body).toContainEqual(database)
    const { password, rest_token, read_only_rest_token, ...hidden } = database
    expect((await homeport.api('GET', `${path}?credentials=hide`)).body).toEqual(hidden)
    const all = JSON.stringify((await homeport.api('GET', '/v2/redis/databases?credentials=hide')).body)
    for (const secret of [password, rest_token, read_only_rest_token]) expect(all).not.toContain(secret)
  })

  it('makes one database of a repeated request', async () => {
    const { apiUrl, credentials } = service.homeport
    const authorization = basicOf(credentials.email, credentials.apiKey)
    const post = async (body: object) => {
      const headers = { authorization, 'idempotency-key': 'order 7' }
      const response = await fetch(`${apiUrl}/v2/redis/database`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      return { status: response.status, body: await response.json() }
    }
    const [one, other] = await Promise.all([post(LEAST), post(LEAST)])
    expect(one).toEqual(other)
    expect((await post({ ...LEAST, database_name: 'another' })).status).toBe(409)
  })

  it('refuses wrong credentials with one text, whichever half is wrong', async () => {
    const { apiUrl, credentials } = service.homeport
    const { email, apiKey } = credentials
    const texts = new Set<string>()
    for (const login of [`${email}:wrong`, `who@example.com:${apiKey}`, `:${apiKey}`, email, '']) {
      const authorization = `Basic ${Buffer.from(login).toString('base64')}`
      const response = await fetch(`${apiUrl}/v2/redis/databases`, { headers: { authorization } })
      expect(response.status).toBe(401)
      texts.add(await response.text())
    }
    texts.add(await (await fetch(`${apiUrl}/v2/redis/databases`)).text())
    expect([...texts]).toEqual([expect.stringContaining('homeport env')])
  })
})

describe('@upstash/redis', () => {
  it('preserves every kind of value', async () => {
    const redis = restClient(database)
    const values = { text: 'grüße 👋', number: 12.5, object: { nested: [1, null, { deep: true }] }, empty: '' }
    for (const [name, value] of Object.entries(values)) await redis.set(`kind:${name}`, value)
    for (const [name, value] of Object.entries(values)) expect(await redis.get(`kind:${name}`)).toEqual(value)
    expect(await redis.get('kind:none')).toBeNull()
    await redis.hset('kind:hash', { a: 1, b: 'two' })
    expect(await redis.hgetall('kind:hash')).toEqual({ a: 1, b: 'two' })
    await redis.zadd('kind:set', { score: 2, member: 'b' }, { score: 1, member: 'a' })
    expect(await redis.zrange('kind:set', 0, -1, { withScores: true })).toEqual(['a', 1, 'b', 2])
    await redis.xadd('kind:stream', '1-1', { field: 'value' })
    expect(await redis.xrange('kind:stream', '-', '+')).toEqual({ '1-1': { field: 'value' } })
    const [cursor, keys] = await redis.scan(0, { match: 'kind:*', count: 1_000 })
    expect([cursor, keys.length]).toEqual(['0', 7])
  })

  it('connects with the code that the console shows', async () => {
    const codeOf = (wanted: string) => snippetsOf(database).find(({ key }) => key === wanted)?.code ?? ''
    const printed = async (code: string) => (await run(process.execPath, ['--input-type=module', '-e', code])).stdout
    expect(await printed(codeOf('rest'))).toBe('hello\n')
    // The same client by its newer name.
    expect(await printed(codeOf('ioredis').replace("'ioredis'", "'iovalkey'"))).toBe('hello\n')
    expect((await run('sh', ['-c', `${codeOf('cli')} get greeting`])).stdout).toBe('hello\n')
    expect((await run('sh', ['-c', codeOf('curl')])).stdout).toBe('{"result":"OK"}')
  })

  it('transfers values that are not UTF-8, and values of megabytes', async () => {
    const plain = new RestClient({
      url: database.rest_url,
      token: database.rest_token,
      automaticDeserialization: false,
      enableTelemetry: false,
    })
    const bytes = Buffer.from([0, 255, 254, 10, 13, 128])
    await connect(database).set('bytes', bytes)
    const inBase64 = await fetch(`${database.rest_url}/get/bytes`, {
      headers: { authorization: `Bearer ${database.rest_token}`, 'upstash-encoding': 'base64' },
    })
    expect(await inBase64.json()).toEqual({ result: bytes.toString('base64') })
    const large = 'ä'.repeat(2_000_000)
    await plain.set('large', large)
    expect(await plain.get('large')).toBe(large)
    expect(await plain.strlen('large')).toBe(4_000_000)
  })

  it('sends commands of one tick as a pipeline, and answers each', async () => {
    const redis = restClient(database)
    const results = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        await redis.set(`auto:${index}`, index)
        return redis.get(`auto:${index}`)
      }),
    )
    expect(results).toEqual(Array.from({ length: 50 }, (_, index) => index))
  })

  it('runs pipelines in which one command fails, and transactions of all or nothing', async () => {
    const redis = restClient(database)
    await redis.set('text', 'abc')
    const mixed = await redis.pipeline().set('one', 1).lpush('text', 'x').get('one').exec({ keepErrors: true })
    expect(mixed.map(({ result, error }) => error ?? result)).toEqual(['OK', expect.stringContaining('WRONGTYPE'), 1])
    expect(await redis.multi().incr('counter').incrby('counter', 5).get('counter').exec()).toEqual([1, 6, 6])
    await expect(redis.multi().set('never', 1).lpush('text').exec()).rejects.toThrow('ERR wrong number of arguments')
    expect(await redis.exists('never')).toBe(0)
  })

  it('runs scripts by text and by hash', async () => {
    const redis = restClient(database)
    const script = redis.createScript<string>('return redis.call("get", KEYS[1]) .. ARGV[1]')
    await redis.set('greeting', 'hello')
    expect(await script.exec(['greeting'], [' world'])).toBe('hello world')
    expect(await script.exec(['greeting'], [' again'])).toBe('hello again')
    expect(await redis.scriptExists(script.sha1 ?? '')).toEqual([1])
    await expect(redis.eval('return redis.error_reply("MINE failed")', [], [])).rejects.toThrow('MINE failed')
  })

  it('throws the error of the engine', async () => {
    const redis = restClient(database)
    await redis.set('text', 'abc')
    await expect(redis.incr('text')).rejects.toThrow('ERR value is not an integer or out of range')
    await expect(redis.lpush('text', 1)).rejects.toThrow('WRONGTYPE')
    await expect(restClient(database, 'wrong').get('text')).rejects.toThrow('WRONGPASS')
  })

  it('reads with the read-only token and writes nothing with it', async () => {
    const redis = restClient(database)
    const reader = restClient(database, database.read_only_rest_token)
    await redis.set('shared', 'v')
    expect(await reader.get('shared')).toBe('v')
    await expect(reader.set('shared', 'w')).rejects.toThrow('NOPERM')
    await expect(reader.pipeline().get('shared').del('shared').exec()).rejects.toThrow('NOPERM')
    await expect(reader.eval('return redis.call("del", KEYS[1])', ['shared'], [])).rejects.toThrow(/NOPERM|ACL/)
    expect(await redis.get('shared')).toBe('v')
  })
})

describe('Redis clients', () => {
  it('log in with redis-cli and talk to the data that REST has written', async () => {
    await restClient(database).set('from', 'rest')
    expect(await cli(database, ['GET from', 'SET from cli', 'GET from'])).toBe('rest\nOK\ncli\n')
    expect(await cli(database, ['GET from'], 'wrong')).toMatch(/NOAUTH[\s\S]*WRONGPASS/)
    expect(await restClient(database).get('from')).toBe('cli')
  })

  it('run pipelines and transactions', async () => {
    const client = connect(database)
    const replies = await client.pipeline().set('p', 1).incr('p').lpush('p', 'x').get('p').exec()
    expect(replies?.map(([error, value]) => error?.message ?? value)).toEqual([
      'OK',
      2,
      expect.stringContaining('WRONGTYPE'),
      '2',
    ])
    expect(await client.multi().incr('p').incr('p').exec()).toEqual([
      [null, 3],
      [null, 4],
    ])
    await client.watch('p')
    await restClient(database).set('p', 100)
    expect(await client.multi().incr('p').exec()).toBeNull()
  })

  it('subscribe, and get what any client publishes', async () => {
    const subscriber = connect(database)
    const heard: string[] = []
    subscriber.on('message', (channel, message) => heard.push(`${channel}: ${message}`))
    await subscriber.subscribe('news', 'weather')
    expect(await connect(database).publish('news', 'tcp')).toBe(1)
    expect(await restClient(database).publish('weather', 'rest')).toBe(1)
    await waitFor(() => heard.length === 2, { what: 'both messages' })
    expect(heard).toEqual(['news: tcp', 'weather: rest'])
  })

  it('wait in a blocking read until another client writes', async () => {
    const waiting = connect(database)
    const popped = waiting.blpop('jobs', 0)
    const blocked = async () => (await connect(database).info('clients')).includes('blocked_clients:1')
    await waitFor(blocked, { what: 'the client to be blocked' })
    await restClient(database).lpush('jobs', 'job 1')
    expect(await popped).toEqual(['jobs', 'job 1'])
    expect(await waiting.ping()).toBe('PONG')
  })

  it('are refused without and with a wrong password, and with the secret of another database', async () => {
    const other = await createDatabase(service, { database_name: 'other' })
    for (const password of ['', 'wrong', other.password]) {
      await expect(connect(database, { password }).get('k')).rejects.toThrow(/NOAUTH|WRONGPASS|closed/)
    }
    await expect(restClient(database, other.password).get('k')).rejects.toThrow('WRONGPASS')
    await connect(other).set('only-here', 1)
    expect(await connect(database).exists('only-here')).toBe(0)
  })

  it.each([
    ['SHUTDOWN', 'NOSAVE'],
    ['CONFIG', 'SET', 'dir', '/tmp'],
    ['DEBUG', 'SLEEP', '0'],
    ['REPLICAOF', 'NO', 'ONE'],
    ['SLAVEOF', '127.0.0.1', '1'],
    ['MODULE', 'LOAD', '/tmp/x.so'],
    ['ACL', 'SETUSER', 'evil', 'on', 'nopass', '~*', '+@all'],
    ['CLUSTER', 'MEET', '127.0.0.1', '1'],
    ['MIGRATE', '127.0.0.1', '1', 'k', '0', '1'],
    ['SYNC'],
    ['BGREWRITEAOF'],
    ['FAILOVER'],
    ['MEMORY', 'MALLOC-STATS'],
  ])('cannot send %s %s', async (name, ...args) => {
    const engines = enginesOf(database).map(({ pid }) => pid)
    await expect(connect(database).call(name, ...args)).rejects.toThrow(/^(ERR|NOPERM) /)
    const overRest = await fetch(database.rest_url, {
      method: 'POST',
      headers: { authorization: `Bearer ${database.rest_token}` },
      body: JSON.stringify([name, ...args]),
    })
    expect([overRest.status, await overRest.json()]).toEqual([
      400,
      { error: expect.stringMatching(/^(ERR|NOPERM) [^/]*$/) },
    ])
    expect(enginesOf(database).map(({ pid }) => pid)).toEqual(engines)
  })
})

it('reveal nothing about the machine that they run on', async () => {
  const client = connect(database)
  const asked = [
    ['CONFIG', 'GET', '*'],
    ['INFO', 'everything'],
    ['CLIENT', 'LIST'],
    ['ROLE'],
    ['SLOWLOG', 'GET', '100'],
    ['LATENCY', 'DOCTOR'],
    ['MEMORY', 'DOCTOR'],
    ['ACL', 'LIST'],
  ] as const
  await client.call('CONFIG', 'SET', 'slowlog-log-slower-than', '0')
  await client.call('CONFIG', 'SET', 'slowlog-log-slower-than', '10000')
  const shown = JSON.stringify(await Promise.all(asked.map(([name, ...args]) => client.call(name, ...args))))
  expect(shown).toContain('redis_version:')
  await expect(client.eval("return redis.call('INFO', 'server')", 0)).rejects.toThrow(/can't run this command/)
  for (const secret of [service.homeport.place.dataDir, '.sock', 'engine.conf', 'config_file:/']) {
    expect(shown).not.toContain(secret)
  }
})

describe('a read region', () => {
  it('has what was written to the primary, and takes no writes itself', async () => {
    await restClient(database).set('replicated', 'here')
    const replica = connectToMember(database, 'eu-west-1')
    await waitFor(async () => (await replica.get('replicated')) === 'here', { what: 'the write in the read region' })
    await expect(replica.set('replicated', 'there')).rejects.toThrow(/READONLY|NOPERM/)
  })

  it('catches up after its engine was killed', async () => {
    const inRegion = (region: string) => enginesIn(join(folderOf(database), region))
    const [before] = inRegion('eu-west-1')
    if (!before) throw new Error('the replica has no engine')
    process.kill(before.pid, 'SIGKILL')
    await restClient(database).set('meanwhile', 'written')
    const hasIt = async () => {
      const client = connectToMember(database, 'eu-west-1')
      return (await client.get('meanwhile').finally(() => client.disconnect())) === 'written'
    }
    await waitFor(hasIt, { what: 'the read region to catch up' })
    expect(inRegion('eu-west-1').map(({ pid }) => pid)).not.toContain(before?.pid)
  })
})

describe('databases', () => {
  it('serve again with their data after their engine was killed', async () => {
    const some = await createDatabase(service, { database_name: 'killed' })
    const client = connect(some)
    await client.set('k', 'v')
    const isSynced = async () => (await client.info('persistence')).includes('aof_pending_bio_fsync:0')
    await waitFor(isSynced, { what: 'the log of the engine to be on disk' })
    for (const { pid } of processesMarked(folderOf(some))) process.kill(pid, 'SIGKILL')
    await waitFor(async () => (await restClient(some).get('k')) === 'v', { what: 'the database to come back' })
    expect(enginesOf(some)).toHaveLength(1)
  })

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'sleep after a start of the server that follows %s, and come back with their data',
    async (signal) => {
      await connect(database).mset('life', signal, 'other', 'value')
      const listed = (await service.homeport.api('GET', '/v2/redis/databases')).body as NewDatabase[]
      const before = enginesOf(database).map(({ pid }) => pid)
      await service.restart(signal, 'all nodes')
      const asleep = listed.map((record) => ({ ...record, state: 'passive' }))
      expect((await service.homeport.api('GET', '/v2/redis/databases')).body).toEqual(asleep)
      expect(await connect(database).mget('life', 'other')).toEqual([signal, 'value'])
      expect(await restClient(database).get('life')).toBe(signal)
      const atReplica = async () => {
        const client = connectToMember(database, 'eu-west-1')
        return (await client.get('life').finally(() => client.disconnect())) === signal
      }
      await waitFor(atReplica, { what: 'the read region to follow again' })
      const after = enginesOf(database).map(({ pid }) => pid)
      expect(after).toHaveLength(2)
      expect(after.filter((pid) => before.includes(pid))).toEqual([])
    },
  )

  it('leave no process, port, file or token when they are deleted', async () => {
    const client = connect(database)
    await client.set('k', 'v')
    const path = `/v2/redis/database/${database.database_id}`
    expect(await service.homeport.api('DELETE', path)).toMatchObject({ status: 200, body: 'OK' })
    expect(enginesOf(database)).toEqual([])
    expect(await isPortFree(database.port)).toBe(true)
    expect(existsSync(folderOf(database))).toBe(false)
    await expect(client.get('k')).rejects.toThrow()
    await expect(restClient(database).get('k')).rejects.toThrow('WRONGPASS')
    expect((await service.homeport.api('GET', path)).status).toBe(404)
    expect((await service.homeport.api('DELETE', path)).status).toBe(404)
  })

  it('leave nothing at all once all are deleted', async () => {
    const { homeport } = service
    const listed = (await homeport.api('GET', '/v2/redis/databases')).body as NewDatabase[]
    await Promise.all(listed.map(({ database_id }) => homeport.api('DELETE', `/v2/redis/database/${database_id}`)))
    expect((await homeport.api('GET', '/v2/redis/databases')).body).toEqual([])
    for (const folder of service.databaseFolders) expect([readdirSync(folder), enginesIn(folder)]).toEqual([[], []])
  })
})
