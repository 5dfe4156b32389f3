import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { Redis } from '@upstash/redis'
import { Redis as Client } from 'iovalkey'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { makeToken } from '../../src/databases/users/user.js'
import { type RunningHomeport, startHomeport, waitFor } from '../support/index.js'

interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
  readonly rest_token: string
  readonly read_only_rest_token: string
  readonly rest_url: string
  readonly db_acl_enabled: string
}

const PASSWORD = 'Rather-Long-And-Various-42!'
let server: RunningHomeport
let database: Database

async function create(some: object): Promise<Database> {
  const least = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
  return (await server.api('POST', '/v2/redis/database', { ...least, ...some })).body as Database
}

beforeAll(async () => {
  server = await startHomeport()
  database = await create({ plan: 'payg', read_regions: ['us-west-1'] })
})

interface Connection {
  readonly client: Client
  readonly closed: () => boolean
}

function connect(username: string, password: string, { port }: Database = database): Connection {
  const client = new Client({
    host: '127.0.0.1',
    port,
    username,
    password,
    retryStrategy: () => null,
    enableReadyCheck: false,
  })
  let isClosed = false
  client.on('error', () => undefined)
  client.on('close', () => {
    isClosed = true
  })
  onTestFinished(() => client.disconnect())
  return { client, closed: () => isClosed }
}

/** What the database answers to inline commands that end with QUIT, as bytes, without the reply to HELLO. */
async function inResp3(commands: string): Promise<string> {
  const socket = connectSocket(database.port, '127.0.0.1').setEncoding('latin1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.on('data', (text) => (received += String(text)))
  socket.write(`HELLO 3 AUTH default ${database.password}\r\nECHO hello\r\n${commands}`)
  await once(socket, 'end')
  return received.slice(received.indexOf('hello\r\n') + 'hello\r\n'.length)
}

const owner = (of: Database = database): Client => connect('default', of.password, of).client

const acl = (client: Client, ...args: string[]): Promise<unknown> => client.call('ACL', ...args)

/** A new user and the token that opens it. */
async function newUser(name: string, ...rules: string[]): Promise<string> {
  const client = owner()
  const token = String(await acl(client, 'GENTOKEN', name, PASSWORD))
  expect(await acl(client, 'SETUSER', name, 'on', `>${token}`, ...rules)).toBe('OK')
  return token
}

const rest = (token: string): Redis => new Redis({ url: database.rest_url, token, automaticDeserialization: false })

describe('a user of a database', () => {
  it('logs in with its password or its token and may do what its rules allow', async () => {
    const token = await newUser('alice', '~news:*', '+@read', '+set', '+eval')
    for (const password of [PASSWORD, token]) {
      const { client } = connect('alice', password)
      expect(await client.set('news:1', 'x')).toBe('OK')
      expect(await client.get('news:1')).toBe('x')
      await expect(client.set('other', 'x')).rejects.toThrow(/^NOPERM/)
      await expect(client.del('news:1')).rejects.toThrow(/^NOPERM/)
      await expect(client.eval("return redis.call('CONFIG', 'GET', 'port')", 0)).rejects.toThrow()
      expect(await acl(client, 'WHOAMI')).toBe('alice')
      await expect(acl(client, 'SETUSER', 'alice', '+@all')).rejects.toThrow(/^NOPERM .*'acl\|setuser' command$/)
      await expect(client.config('SET', 'notify-keyspace-events', 'KEA')).rejects.toThrow(/^NOPERM/)
    }
    const wrong = connect('alice', 'something else').client
    await expect(wrong.ping()).rejects.toThrow()
    await expect(connect('nobody', PASSWORD).client.ping()).rejects.toThrow()
  })

  it('is shown by GETUSER, LIST and USERS without its password', async () => {
    await newUser('teller', '~a', '&b', '+get')
    const client = owner()
    const view = (await acl(client, 'GETUSER', 'teller')) as unknown[]
    expect(view).toEqual([
      ...['flags', ['on'], 'passwords', [expect.stringMatching(/^[0-9a-f]{64}$/)]],
      ...['commands', '-@all +get', 'keys', '~a', 'channels', '&b'],
    ])
    expect(await acl(client, 'GETUSER', 'nosuch')).toBeNull()
    expect(await acl(client, 'USERS')).toEqual(expect.arrayContaining(['default', 'default_ro', 'teller']))
    expect(await acl(client, 'LIST')).toEqual(
      expect.arrayContaining([expect.stringMatching(/^user teller on #[0-9a-f]{64} ~a &b -@all \+get$/)]),
    )
    expect(await Promise.all([acl(client, 'LOG'), acl(client, 'LOG', 'RESET'), acl(client, 'SAVE')])).toEqual([
      ...[[], 'OK', 'OK'],
    ])
    const { body } = await server.api('GET', `/v2/redis/database/${database.database_id}`)
    expect(body).toMatchObject({ db_acl_enabled: 'true', db_acl_default_user_status: 'true' })
    const audit = await server.api('GET', '/v2/auditlogs')
    expect(JSON.stringify(audit.body)).toContain('REDIS_USER - default')
  })

  it('and the settings are shown as maps and sets in RESP3', async () => {
    await newUser('third', '~a', '&b', '+get')
    const settings = 'CONFIG GET appendfsync\r\nCONFIG GET nosuch\r\n'
    const replies = await inResp3(`${settings}ACL GETUSER third\r\nQUIT\r\n`)
    expect(replies.replace(/[0-9a-f]{64}/, 'hash')).toBe(
      [
        ...['%1', '$11', 'appendfsync', '$8', 'everysec', '%0'],
        ...['%5', '$5', 'flags', '~1', '$2', 'on', '$9', 'passwords', '*1', '$64', 'hash'],
        ...['$8', 'commands', '$10', '-@all +get', '$4', 'keys', '$2', '~a', '$8', 'channels', '$2', '&b'],
        ...['+OK', ''],
      ].join('\r\n'),
    )
  })

  it('has a REST token with its current rules', async () => {
    const token = await newUser('poster', '~*', '+get', '+set')
    const client = owner()
    const restToken = String(await acl(client, 'RESTTOKEN', 'poster', PASSWORD))
    expect(await acl(client, 'RESTTOKEN', 'poster', token)).toBe(restToken)
    const redis = rest(restToken)
    expect(await redis.set('posted', '1')).toBe('OK')
    await acl(client, 'SETUSER', 'poster', '-set')
    await expect(redis.set('posted', '2')).rejects.toThrow(/NOPERM/)
    expect(await redis.get('posted')).toBe('1')
    await acl(client, 'SETUSER', 'poster', 'off')
    await expect(redis.get('posted')).rejects.toThrow(/WRONGPASS/)
    await acl(client, 'SETUSER', 'poster', 'on', 'resetpass')
    await expect(redis.get('posted')).rejects.toThrow(/WRONGPASS/)
    await expect(acl(client, 'RESTTOKEN', 'poster', 'wrong')).rejects.toThrow(
      'ERR Wrong password or user "poster" does not exist',
    )
  })

  it('is created and shown over REST as well', async () => {
    const redis = rest(database.rest_token)
    const token = await redis.exec<string>(['ACL', 'GENTOKEN', 'webby'])
    expect(await redis.exec(['ACL', 'SETUSER', 'webby', 'on', `>${token}`, '~*', '+get'])).toBe('OK')
    const restToken = await redis.exec<string>(['ACL', 'RESTTOKEN', 'webby', token])
    expect(await rest(restToken).exec(['ACL', 'WHOAMI'])).toBe('webby')
    await expect(rest(restToken).exec(['ACL', 'LIST'])).rejects.toThrow(/NOPERM/)
    expect(await redis.exec(['ACL', 'GETUSER', 'webby'])).toContain('-@all +get')
    await expect(rest(database.read_only_rest_token).exec(['ACL', 'USERS'])).rejects.toThrow(/NOPERM/)
  })

  it('that is deleted is disconnected, and a new one of the same name is another user', async () => {
    const token = await newUser('brief', '~*', '+@all')
    const [gone, blocked] = [connect('brief', PASSWORD), connect('brief', PASSWORD)]
    expect(await gone.client.set('a', '1')).toBe('OK')
    void blocked.client.blpop('nothing', 0).catch(() => undefined)
    const restToken = String(await acl(owner(), 'RESTTOKEN', 'brief', token))
    expect(await acl(owner(), 'DELUSER', 'brief', 'nosuch')).toBe(1)
    await waitFor(() => gone.closed() && blocked.closed(), { what: 'the connections to be closed' })
    await expect(connect('brief', PASSWORD).client.ping()).rejects.toThrow()
    await newUser('brief', '~*', '+@all')
    await expect(rest(restToken).get('a')).rejects.toThrow(/WRONGPASS/)
    expect(await connect('brief', PASSWORD).client.get('a')).toBe('1')
  })

  it('that every database has is read-only', async () => {
    const client = owner()
    await expect(acl(client, 'SETUSER', 'default', 'off')).rejects.toThrow("ERR The 'default' user cannot be modified")
    await expect(acl(client, 'DELUSER', 'default')).rejects.toThrow("ERR The 'default' user cannot be removed")
    await expect(acl(client, 'GENTOKEN', 'alice', 'easy')).rejects.toThrow(/too easy to guess/)
    await expect(acl(client, 'SETUSER', 'homeport-x', 'on')).rejects.toThrow(/^ERR A user name has/)
  })

  it('has passwords, of which all users of a database together have a limited number', async () => {
    const crowded = await create({ plan: 'payg' })
    const client = owner(crowded)
    const tokens = (name: string, count: number) =>
      Array.from({ length: count }, () => `>${makeToken(name, undefined, crowded.rest_token)}`)
    for (let user = 0; user < 16; user++) {
      expect(await acl(client, 'SETUSER', `user${user}`, ...tokens(`user${user}`, 64))).toBe('OK')
    }
    const one = tokens('more', 1)
    const tooMany = 'ERR The users of a database have at most 1024 passwords together'
    await expect(acl(client, 'SETUSER', 'more', ...one)).rejects.toThrow(tooMany)
    expect(await acl(client, 'SETUSER', 'user0', 'resetpass', ...tokens('user0', 63))).toBe('OK')
    expect(await acl(client, 'SETUSER', 'more', 'on', ...one)).toBe('OK')
  })

  it('has rules, of which all users of a database together have a limited length', async () => {
    const crowded = await create({ plan: 'payg' })
    const client = owner(crowded)
    const patterns = Array.from({ length: 16 }, (_, at) => `~${at}${'x'.repeat(990)}`)
    for (let user = 0; user < 65; user++) expect(await acl(client, 'SETUSER', `user${user}`, ...patterns)).toBe('OK')
    const tooLong = /The users of a database take at most 1048576 characters together/
    await expect(acl(client, 'SETUSER', 'more', ...patterns)).rejects.toThrow(tooLong)
    expect(await acl(client, 'SETUSER', 'more', '~short')).toBe('OK')
    expect(await acl(client, 'SETUSER', 'user0', 'resetkeys')).toBe('OK')
  })

  it('is not part of plan free', async () => {
    const free = await create({ plan: 'free' })
    await expect(acl(owner(free), 'GENTOKEN', 'alice')).rejects.toThrow(/^ERR Plan "free" does not include ACL users/)
    expect(await acl(owner(free), 'USERS')).toEqual(['default', 'default_ro'])
  })
})

describe('keyspace notifications', () => {
  it('arrive once they are switched on', async () => {
    const client = owner()
    expect(await client.config('GET', 'notify-*')).toEqual(['notify-keyspace-events', ''])
    expect(await client.config('SET', 'notify-keyspace-events', 'EKA')).toBe('OK')
    expect(await client.config('GET', 'notify-*')).toEqual(['notify-keyspace-events', 'AKE'])
    await expect(client.config('SET', 'notify-keyspace-events', 'q')).rejects.toThrow(/Invalid event class character/)
    await expect(client.config('SET', 'dir', '/tmp')).rejects.toThrow(/^ERR Unknown option/)
    const subscriber = owner()
    const seen: string[] = []
    subscriber.on('pmessage', (_pattern, channel, text) => seen.push(`${channel} ${text}`))
    await subscriber.psubscribe('__key*__:*')
    await client.set('noticed', '1')
    await waitFor(() => seen.length === 2, { what: 'both notifications' })
    expect(seen).toEqual(['__keyspace@0__:noticed set', '__keyevent@0__:set noticed'])
  })
})

describe('commands about the database among others', () => {
  const EVENTS = 'notify-keyspace-events'

  it('apply to later commands of a pipeline', async () => {
    const subscriber = owner()
    const seen: string[] = []
    subscriber.on('message', (_channel, key) => seen.push(key))
    await subscriber.subscribe('__keyevent@0__:set')
    const commands = [
      ['CONFIG', 'SET', EVENTS, ''],
      ['SET', 'first', 1],
      ['CONFIG', 'SET', EVENTS, 'E$'],
      ['SET', 'second', 1],
      ['CONFIG', 'GET', EVENTS],
    ]
    const headers = { authorization: `Bearer ${database.rest_token}` }
    const pipeline = { method: 'POST', headers, body: JSON.stringify(commands) }
    const answer = await fetch(`${database.rest_url}/pipeline`, pipeline)
    const results = ['OK', 'OK', 'OK', 'OK', [EVENTS, '$E']]
    expect(await answer.json()).toEqual(results.map((result) => ({ result })))
    await waitFor(() => seen.length > 0, { what: 'the notification' })
    expect(seen).toEqual(['second'])
  })

  it('run with a transaction, and not with a discarded one', async () => {
    const client = owner()
    const made = client.multi().set('a', '1').call('ACL', 'SETUSER', 'multi', 'on', '~*', '+get').call('ACL', 'USERS')
    expect(await made.exec()).toEqual([
      [null, 'OK'],
      [null, 'OK'],
      [null, expect.arrayContaining(['multi'])],
    ])
    await client.watch('a')
    await owner().set('a', '2')
    expect(await client.multi().call('ACL', 'DELUSER', 'multi').exec()).toBeNull()
    expect(await acl(client, 'USERS')).toContain('multi')
    expect(await client.multi().call('ACL', 'DELUSER', 'multi').exec()).toEqual([[null, 1]])
  })
})

it('users and settings survive a restart', { timeout: 120_000 }, async () => {
  await newUser('lasting', '~*', '+get')
  const restToken = String(await acl(owner(), 'RESTTOKEN', 'lasting', PASSWORD))
  const { place } = server
  await server.kill('SIGTERM')
  server = await startHomeport(place)
  // No database is awake after a start: these commands wake none, and apply to the engine that starts next.
  const asleep = rest(database.rest_token)
  const records = async () => JSON.stringify((await server.api('GET', '/v2/redis/databases')).body)
  const token = await asleep.exec<string>(['ACL', 'GENTOKEN', 'sleeper'])
  expect(await asleep.exec(['ACL', 'SETUSER', 'sleeper', 'on', `>${token}`, '~*', '+get'])).toBe('OK')
  expect(await asleep.exec(['CONFIG', 'SET', 'notify-keyspace-events', 'Ex'])).toBe('OK')
  expect(await asleep.exec(['CONFIG', 'SET', 'hash-max-listpack-entries', '1'])).toBe('OK')
  expect(await records()).toMatch(/"state":"passive"/)
  expect(await connect('sleeper', token).client.get('none')).toBeNull()
  expect(await connect('lasting', PASSWORD).client.get('none')).toBeNull()
  expect(await rest(restToken).get('none')).toBeNull()
  expect(await owner().config('GET', 'notify-keyspace-events')).toEqual(['notify-keyspace-events', 'xE'])
  await expect(connect('lasting', PASSWORD).client.set('a', '1')).rejects.toThrow(/^NOPERM/)
  await owner().hset('two', { a: 1, b: 2 })
  expect(await owner().object('ENCODING', 'two')).toBe('hashtable')
})
