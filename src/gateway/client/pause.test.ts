import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { frame, login, post, run } from '../testing/limited.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig
let owner: RawClient

beforeAll(async () => {
  rig = await startRig()
})

beforeEach(async () => {
  owner = await login(rig)
  owner.send('FLUSHALL\r\n')
  await owner.expect('+OK\r\n')
})

afterEach(async () => {
  const client = await login(rig)
  client.send('CLIENT UNPAUSE\r\n')
  await client.expect('+OK\r\n')
  client.socket.destroy()
})

async function pause(...words: readonly string[]): Promise<void> {
  owner.send(frame('CLIENT', 'PAUSE', ...words))
  await owner.expect('+OK\r\n')
}

async function unpause(): Promise<void> {
  owner.send('CLIENT UNPAUSE\r\n')
  await owner.expect('+OK\r\n')
}

/** The number of blocked clients in INFO. */
async function blockedClients(): Promise<number> {
  const { body } = await run(rig, 'INFO', 'clients')
  return Number(/blocked_clients:(\d+)/.exec(JSON.stringify(body))?.[1])
}

const untilHeld = (count: number): Promise<unknown> =>
  waitFor(async () => (await blockedClients()) === count, { what: `${count} commands to be held` })

async function expectHeld(command: string, reply: string): Promise<void> {
  const client = await login(rig)
  client.send(command)
  await untilHeld(1)
  expect(client.received).toBe('')
  await unpause()
  await client.expect(reply)
  client.socket.destroy()
}

async function ask(client: RawClient, command: string, reply: string): Promise<void> {
  client.send(command)
  await client.expect(reply)
}

describe('CLIENT PAUSE WRITE', () => {
  it.each([
    ['SET a 1\r\n', '+OK\r\n'],
    ['PFCOUNT a\r\n', ':0\r\n'],
    ['PUBLISH a 1\r\n', ':0\r\n'],
    ['SPUBLISH a 1\r\n', ':0\r\n'],
    ['EVAL "return 1" 0\r\n', ':1\r\n'],
    [frame('EVAL', '#!lua\nreturn 1', '0'), ':1\r\n'],
    ['XGROUP CREATE s g $ MKSTREAM\r\n', '+OK\r\n'],
    ['FUNCTION FLUSH\r\n', '+OK\r\n'],
    ['BLPOP a 0.01\r\n', '*-1\r\n'],
    [`GET a\r\nSET a ${'x'.repeat(10)}\r\nGET a\r\n`, '$-1\r\n+OK\r\n$10\r\nxxxxxxxxxx\r\n'],
  ])('holds %j', async (command, reply) => {
    await pause('60000', 'WRITE')
    if (command.startsWith('GET')) {
      const client = await login(rig)
      client.send(command)
      await client.expect('$-1\r\n')
      await untilHeld(1)
      await unpause()
      await client.expect(reply.slice(5))
    } else await expectHeld(command, reply)
  })

  it('holds a large value that is passed on in pieces, and later commands', async () => {
    await pause('60000', 'write')
    const value = 'x'.repeat(2_000_000)
    await expectHeld(`${frame('SET', 'a', value)}STRLEN a\r\n`, '+OK\r\n:2000000\r\n')
  })

  it('holds EXEC of a transaction that writes, and no other command of it', async () => {
    const writer = await login(rig)
    await ask(writer, 'MULTI\r\nSET a 1\r\nGET a\r\n', '+OK\r\n+QUEUED\r\n+QUEUED\r\n')
    const scripts = await login(rig)
    await ask(scripts, 'MULTI\r\nEVAL "return 1" 0\r\n', '+OK\r\n+QUEUED\r\n')
    await pause('60000', 'WRITE')
    writer.send('EXEC\r\n')
    scripts.send('EXEC\r\n')
    await untilHeld(2)
    const reader = await login(rig)
    const script = frame('EVAL', '#!lua flags=no-writes\nreturn 12', '0')
    await ask(
      reader,
      `MULTI\r\nPING\r\nGET a\r\n${script}EXEC\r\n`,
      '+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+PONG\r\n$-1\r\n:12\r\n',
    )
    await unpause()
    await writer.expect('*2\r\n+OK\r\n$1\r\n1\r\n')
    await scripts.expect('*1\r\n:1\r\n')
  })

  it('passes reads, scripts and functions that declare to read only, and malformed commands', async () => {
    const library =
      "#!lua name=l\nredis.register_function{function_name='f',callback=function() return 'hello' end," +
      "flags={'no-writes'}}redis.register_function('g',function() return 'written' end)"
    await ask(owner, frame('FUNCTION', 'LOAD', library), '$1\r\nl\r\n')
    await pause('60000', 'WRITE')
    const client = await login(rig)
    await ask(client, 'GET a\r\nPING\r\nFUNCTION STATS\r\n', '$-1\r\n+PONG\r\n*4\r\n$14\r\nrunning_script\r\n')
    await waitFor(() => client.received.endsWith('functions_count\r\n:2\r\n'), { what: 'the statistics' })
    client.received = ''
    await ask(client, frame('EVAL', '#!lua flags=allow-stale,no-writes\nreturn 7', '0'), ':7\r\n')
    await ask(client, frame('EVAL_RO', "return redis.call('GET','a')", '1', 'a'), '$-1\r\n')
    const script = '#!lua flags=no-writes\nreturn 2'
    await ask(client, frame('SCRIPT', 'LOAD', script), '$40\r\nd9b1a9b5e5b1a0c8\r\n'.slice(0, 5))
    await waitFor(() => client.received.length === 42, { what: 'the digest' })
    const digest = client.received.slice(0, 40)
    client.received = ''
    await ask(client, frame('EVALSHA', digest, '0'), ':2\r\n')
    await ask(client, frame('FCALL', 'f', '0'), '$5\r\nhello\r\n')
    await ask(client, 'SET a\r\n', "-ERR wrong number of arguments for 'set' command\r\n")
    await expectHeld(frame('FCALL', 'g', '0'), '$7\r\nwritten\r\n')
  })

  it('begins at EXEC when it is in a transaction', async () => {
    await ask(
      owner,
      'MULTI\r\nSET a 1\r\nCLIENT PAUSE 60000 WRITE\r\nSET b 2\r\nEXEC\r\n',
      '+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n+OK\r\n+OK\r\n',
    )
    await expectHeld('SET c 3\r\n', '+OK\r\n')
  })

  it('holds requests over REST, in the order of a pipeline', async () => {
    await pause('60000', 'WRITE')
    expect(await run(rig, 'GET', 'a')).toEqual({ status: 200, body: { result: null } })
    const held = [
      run(rig, 'SET', 'a', '1'),
      post(rig, '/pipeline', [
        ['GET', 'b'],
        ['SET', 'b', '1'],
        ['GET', 'b'],
      ]),
      post(rig, '/multi-exec', [['INCR', 'c']]),
      fetch(`${rig.restUrl}/set/d`, {
        method: 'POST',
        body: 'x'.repeat(2_000_000),
        headers: { authorization: `Bearer ${CREDENTIALS.token}` },
      }).then(async (response) => ({ status: response.status, body: await response.json() })),
    ]
    await untilHeld(held.length)
    await unpause()
    expect((await Promise.all(held)).map(({ body }) => body)).toEqual([
      { result: 'OK' },
      [{ result: null }, { result: 'OK' }, { result: '1' }],
      [{ result: 1 }],
      { result: 'OK' },
    ])
  })

  it('drops the commands of a client that disconnects', async () => {
    await pause('60000', 'WRITE')
    const client = await login(rig)
    client.send('SET gone 1\r\n')
    const half = await login(rig)
    half.send('SET half 1\r\n')
    const abort = new AbortController()
    const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
    const request = fetch(`${rig.restUrl}/set/rest/1`, { headers, signal: abort.signal }).catch(() => 'aborted')
    await untilHeld(3)
    client.socket.destroy()
    half.socket.end()
    abort.abort()
    expect(await request).toBe('aborted')
    await untilHeld(0)
    await unpause()
    await ask(owner, 'EXISTS gone half rest\r\n', ':0\r\n')
  })

  it('holds at most as many REST requests as the database may have clients', async () => {
    const small = await startRig({ maxClients: 5 })
    await ask(await login(small), 'CLIENT PAUSE 60000 WRITE\r\n', '+OK\r\n')
    const held = Array.from({ length: 6 }, () => run(small, 'INCR', 'n'))
    expect((await Promise.race(held)).body).toEqual({ error: 'ERR max concurrent connections exceeded' })
    await ask(await login(small), 'CLIENT UNPAUSE\r\n', '+OK\r\n')
    const results = await Promise.all(held)
    expect(results.filter(({ status }) => status === 200)).toHaveLength(5)
  })
})

describe('CLIENT PAUSE', () => {
  it('holds every command except logins and CLIENT UNPAUSE', async () => {
    await pause('60000')
    const client = await login(rig)
    client.send('GET a\r\n')
    const unknown = await login(rig)
    await ask(unknown, 'NOSUCH\r\n', "-ERR unknown command 'NOSUCH', with args beginning with: \r\n")
    const asked = run(rig, 'PING')
    await ask(owner, 'CLIENT PAUSE 10 WRITE\r\n', '+OK\r\n')
    expect(client.received).toBe('')
    await unpause()
    await client.expect('$-1\r\n')
    expect((await asked).body).toEqual({ result: 'PONG' })
  })

  it('ends by itself', async () => {
    await pause('50')
    await ask(owner, 'SET a 1\r\n', '+OK\r\n')
    await pause('0')
    await ask(owner, 'SET a 1\r\n', '+OK\r\n')
  })

  it.each([
    ['CLIENT PAUSE', "wrong number of arguments for 'client|pause' command"],
    ['CLIENT PAUSE x', 'timeout is not an integer or out of range'],
    ['CLIENT PAUSE -1', 'timeout is negative'],
    ['CLIENT PAUSE 10 NONE', 'CLIENT PAUSE mode must be WRITE or ALL'],
    ['CLIENT PAUSE 7200001', 'timeout is out of range: at most 7200000 ms are possible'],
    ['CLIENT UNPAUSE now', "wrong number of arguments for 'client|unpause' command"],
  ])('refuses %s', async (command, problem) => {
    await ask(owner, `${command}\r\n`, `-ERR ${problem}\r\n`)
  })

  it('needs the owner', async () => {
    const reader = new RawClient(rig.port)
    await ask(reader, `AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`, '+OK\r\n')
    const problem = "this user has no permissions to run the 'client|pause' command"
    await ask(reader, 'CLIENT PAUSE 10\r\n', `-NOPERM ${problem}\r\n`)
  })
})
