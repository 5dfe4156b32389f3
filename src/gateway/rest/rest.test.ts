import { request } from 'node:http'
import { createConnection } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ENGINE_PASSWORDS } from '../testing/engine.js'
import { patientFetch } from '../testing/patient-fetch.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig({ maxRequestBytes: 100_000 })
})

const AUTHORIZATION = { authorization: `Bearer ${CREDENTIALS.token}` }

interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

async function call(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(rig.restUrl + path, { ...init, headers: { ...AUTHORIZATION, ...init.headers } })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
}

const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  call(path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers })

const run = (...args: unknown[]): Promise<Answer> => post('/', args)

/** The lifetime that a key was given, seconds: the remaining time, rounded up to 50. */
async function lifetimeOf(key: string): Promise<number> {
  const { body } = await run('TTL', key)
  return Math.ceil((body as { result: number }).result / 50) * 50
}

/** Changes what the read-only user may do in the engine. */
async function allow({ engine }: Rig, rules: readonly string[]): Promise<void> {
  const socket = createConnection({ path: engine.socketPath })
  socket.write(`AUTH observer ${ENGINE_PASSWORDS.observer}\r\nACL SETUSER default_ro ${rules.join(' ')}\r\nQUIT\r\n`)
  await text(socket)
}

beforeEach(async () => {
  await run('FLUSHALL')
})

describe('tokens', () => {
  const wrong = { status: 401, body: { error: 'WRONGPASS invalid or missing auth token' } }

  it('are required', async () => {
    expect(await call('/ping', { headers: { authorization: 'Bearer nope' } })).toMatchObject(wrong)
    expect(await call('/ping', { headers: { authorization: `Basic ${CREDENTIALS.token}` } })).toMatchObject(wrong)
    const bare = await fetch(`${rig.restUrl}/ping?_token=nope`)
    expect([bare.status, await bare.json()]).toEqual([wrong.status, wrong.body])
    // The gateway reads nothing else of the query before it knows the token.
    const malformed = await fetch(`${rig.restUrl}/ping?a=%&b=%FF&_token=nope`)
    expect([malformed.status, await malformed.json()]).toEqual([wrong.status, wrong.body])
  })

  it('may be in the query', async () => {
    const response = await fetch(`${rig.restUrl}/set/a/1?_token=${CREDENTIALS.token}&EX=100`)
    expect(await response.json()).toEqual({ result: 'OK' })
    expect(await lifetimeOf('a')).toBe(100)
  })

  it('may be in the query under a percent-encoded name', async () => {
    const response = await fetch(`${rig.restUrl}/echo?%5Fto%6ben=${CREDENTIALS.token}&said`)
    expect(await response.json()).toEqual({ result: 'said' })
  })

  it('of readers only read', async () => {
    const headers = { authorization: `Bearer ${CREDENTIALS.readerToken}` }
    expect(await call('/get/a', { headers })).toMatchObject({ status: 200, body: { result: null } })
    const refused = await call('/set/a/1', { headers })
    expect(refused.status).toBe(400)
    // Newer engines name the user.
    expect(refused.body).toEqual({
      error: expect.stringMatching(/^NOPERM (this user|User default_ro) has no permissions to run the 'set' command$/),
    })
  })
})

describe('the path form', () => {
  it('accepts GET, HEAD, POST and PUT, and refuses other methods', async () => {
    expect(await call('/set/a/hello%20world')).toMatchObject({ status: 200, body: { result: 'OK' } })
    expect(await call('/GET/a', { method: 'PUT' })).toMatchObject({ body: { result: 'hello world' } })
    expect(await call('/get/a', { method: 'HEAD' })).toMatchObject({ status: 200, body: undefined })
    expect(await call('/get/a', { method: 'DELETE' })).toMatchObject({
      status: 405,
      body: { error: expect.stringMatching(/^ERR method DELETE/) },
    })
  })

  it('appends the body, then the query', async () => {
    const body = Buffer.from([0xff, 0x00, 0x41, 0x0d, 0x0a])
    expect((await call('/set/bin?EX=50', { method: 'POST', body })).body).toEqual({ result: 'OK' })
    expect((await call('/get/bin', { headers: { 'upstash-encoding': 'base64' } })).body).toEqual({
      result: body.toString('base64'),
    })
    expect((await call('/set/bin?NX', { method: 'POST', body: 'again' })).body).toEqual({ result: null })
    expect(await lifetimeOf('bin')).toBe(50)
  })

  it('decodes bytes that are not UTF-8', async () => {
    await call('/set/raw/%FF%00')
    expect((await call('/strlen/raw')).body).toEqual({ result: 2 })
    expect(await call('/get/100%')).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/^ERR the path has a percent sign/) },
    })
  })
})

describe('a command in the body', () => {
  it('keeps the digits of large integers in both directions', async () => {
    expect((await post('/', '["set", "n", 9223372036854775806]')).body).toEqual({ result: 'OK' })
    const response = await fetch(`${rig.restUrl}/incr/n`, { headers: AUTHORIZATION })
    expect(await response.text()).toBe('{"result":9223372036854775807}')
    await post('/', '["mset", "a\\"1", 99.5, "b\\\\", 1e3, "c", true]')
    expect((await run('MGET', 'a"1', 'b\\', 'c')).body).toEqual({ result: ['99.5', '1000', 'true'] })
    expect((await post('/', '["zadd", "scores", 1e400, "a"]')).body).toEqual({
      error: 'ERR value is not a valid float',
    })
  })

  it.each([
    ['', 'ERR failed to parse command: the body is not JSON'],
    ['{"a":1}', 'ERR failed to parse command: the body is not a JSON array'],
    ['[]', 'ERR empty command'],
    ['["set","a",null]', 'ERR null args are not supported'],
    ['["set","a",{}]', /^ERR objects and arrays are not supported/],
    ['["NOSUCH"]', "ERR unknown command 'NOSUCH', with args beginning with: "],
    ['["config","rewrite"]', "ERR Command is not available: 'CONFIG REWRITE'"],
    ['["shutdown"]', "ERR Command is not available: 'SHUTDOWN'"],
    ['["get"]', "ERR wrong number of arguments for 'get' command"],
    ['["subscribe","a"]', 'ERR Command "SUBSCRIBE" is not allowed in REST or it has a special context path'],
    ['["multi"]', /^ERR Command "MULTI" is not allowed in REST/],
    ['["blpop","a",0]', /^ERR Command "BLPOP" is not allowed in REST/],
    ['["client","list"]', /^ERR Command "CLIENT" is not allowed in REST/],
    ['["xread","block",0,"streams","s","$"]', /^ERR Command "XREAD" is not allowed in REST/],
  ])('refuses %s', async (body, error) => {
    expect(await post('/', body)).toMatchObject({ status: 400, body: { error: expect.stringMatching(error) } })
  })

  it('accepts a long value beside a number', async () => {
    const value = 'x\\"'.repeat(15_000)
    expect((await run('SET', 'long', value, 'EX', 100)).body).toEqual({ result: 'OK' })
    expect((await run('GET', 'long')).body).toEqual({ result: value })
  })

  it('refuses a body above the limit of the plan, declared or not', async () => {
    const error = 'ERR max request size exceeded. Limit: 100000 bytes, Actual: 200012 bytes'
    expect(await run('SET', 'a', 'x'.repeat(200_000 - 2))).toMatchObject({ status: 413, body: { error } })
    expect(await chunkedPost(Buffer.alloc(200_000, 'x'))).toBe(413)
    expect((await run('PING')).body).toEqual({ result: 'PONG' })
  })

  it('refuses the same over TCP and keeps the connection', async () => {
    const raw = await new RawClient(rig.port).login()
    raw.send(`*3\r\n$3\r\nSET\r\n$1\r\na\r\n$200000\r\n${'x'.repeat(200_000)}\r\n*1\r\n$4\r\nPING\r\n`)
    await raw.expect('-ERR max request size exceeded. Limit: 100000 bytes, Actual: 200031 bytes\r\n+PONG\r\n')
  })
})

describe('answers', () => {
  it('carry a sync token that is different every time', async () => {
    const tokens = await Promise.all([run('PING'), run('PING'), post('/pipeline', [['PING']])])
    expect(new Set(tokens.map(({ headers }) => headers.get('upstash-sync-token'))).size).toBe(3)
  })

  it('encode strings in base64 on request, except a plain OK', async () => {
    const base64 = { 'upstash-encoding': 'base64' }
    const encoded = async (...args: unknown[]): Promise<unknown> => (await post('/', args, base64)).body
    expect(await encoded('SET', 'a', 'OK')).toEqual({ result: 'OK' })
    expect(await encoded('PING')).toEqual({ result: 'UE9ORw==' })
    expect(await encoded('EVAL', "return {1, 'OK', {'x', false}}", 0)).toEqual({ result: [1, 'T0s=', ['eA==', null]] })
    expect(await encoded('EVAL', "return {redis.status_reply('OK')}", 0)).toEqual({ result: ['T0s='] })
    expect(await encoded('GET')).toEqual({ error: "ERR wrong number of arguments for 'get' command" })
  })

  it('are in RESP2 on request', async () => {
    const headers = { ...AUTHORIZATION, 'upstash-response-format': 'resp2' }
    const response = await fetch(`${rig.restUrl}/pipeline`, {
      method: 'POST',
      headers,
      body: '[["SET","a",1],["GET","a"]]',
    })
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(await response.text()).toBe('+OK\r\n$1\r\n1\r\n')
    expect(await call('/ping', { headers: { 'upstash-response-format': 'xml' } })).toMatchObject({ status: 400 })
    const both = { 'upstash-response-format': 'resp2', 'upstash-encoding': 'base64' }
    expect(await call('/ping', { headers: both })).toMatchObject({ status: 400 })
  })

  it('allow browsers to read them', async () => {
    const headers = { origin: 'http://app.example', 'access-control-request-method': 'POST' }
    const preflight = await fetch(rig.restUrl, { method: 'OPTIONS', headers })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-headers')).toContain('upstash-sync-token')
    expect((await call('/ping', { headers })).headers.get('access-control-allow-origin')).toBe('*')
  })

  it('of INFO hide the host', async () => {
    const { body } = await post('/pipeline', [['INFO'], ['PING']])
    expect(JSON.stringify(body)).toContain('redis_version')
    expect(JSON.stringify(body)).not.toMatch(/executable|config_file|tcp_port/)
  })
})

describe('pipelines', () => {
  it('accept a path that ends with a slash, like a command', async () => {
    for (const path of ['/pipeline/', '/multi-exec/'])
      expect(await post(path, [['PING']])).toMatchObject({ status: 200, body: [{ result: 'PONG' }] })
  })

  it('run nothing for a user who may not open one', async () => {
    const denied = await startRig()
    await allow(denied, ['~*', '+set', '-multi'])
    const answer = await fetch(`${denied.restUrl}/multi-exec`, {
      method: 'POST',
      headers: { authorization: `Bearer ${CREDENTIALS.readerToken}` },
      body: '[["SET", "a", "1"], ["GET", "a"]]',
    })
    const { error } = (await answer.json()) as { error: string }
    expect([answer.status, error]).toEqual([400, expect.stringContaining("no permissions to run the 'multi' command")])
    const raw = await new RawClient(denied.port).login()
    await raw.send('EXISTS a\r\n').expect(':0\r\n')
  })

  it('answer each command in its slot, including failed ones', async () => {
    const { status, body } = await post('/pipeline', [
      ['SET', 'a', 1],
      ['SHUTDOWN'],
      ['INCR', 'a'],
      ['GET'],
      ['PING', null],
    ])
    expect(status).toBe(200)
    expect(body).toEqual([
      { result: 'OK' },
      { error: "ERR Command is not available: 'SHUTDOWN'" },
      { result: 2 },
      { error: "ERR wrong number of arguments for 'get' command" },
      { error: 'ERR null args are not supported' },
    ])
  })

  it.each([
    ['nonsense', 'ERR failed to parse pipeline request: the body is not JSON'],
    [
      '["GET","a"]',
      'ERR failed to parse pipeline request: send an array of commands, such as [["SET","a","1"],["GET","a"]]',
    ],
    ['[]', 'ERR empty pipeline request'],
  ])('refuse %s', async (body, error) => {
    expect(await post('/pipeline', body)).toMatchObject({ status: 400, body: { error } })
    expect(await post('/multi-exec', body)).toMatchObject({ status: 400, body: { error } })
  })
})

describe('transactions', () => {
  it('answer each command in its slot', async () => {
    const commands = [
      ['SET', 'a', 'x'],
      ['INCR', 'a'],
      ['GET', 'a'],
      ['HGETALL', 'none'],
    ]
    expect(await post('/multi-exec', commands)).toMatchObject({
      status: 200,
      body: [
        { result: 'OK' },
        { error: 'ERR value is not an integer or out of range' },
        { result: 'x' },
        { result: [] },
      ],
    })
  })

  it('are discarded as a whole when one command cannot be queued', async () => {
    const outcomes = await Promise.all(
      [['GET'], ['SHUTDOWN'], ['EXEC']].map((bad) => post('/multi-exec', [['SET', 'a', '1'], bad])),
    )
    expect(outcomes.map(({ status }) => status)).toEqual([400, 400, 400])
    expect(outcomes[0]?.body).toEqual({
      error: "EXECABORT Transaction discarded because of: ERR wrong number of arguments for 'get' command",
    })
    expect((await run('EXISTS', 'a')).body).toEqual({ result: 0 })
  })

  it('never mix with each other or with other traffic, a thousand at once', async () => {
    const ask = async (path: string, body: unknown): Promise<unknown> => {
      const init = { method: 'POST', headers: AUTHORIZATION, body: JSON.stringify(body) }
      return (await patientFetch(rig.restUrl + path, init)).json()
    }
    const transaction = [
      ['INCR', 'n'],
      ['GET', 'n'],
      ['INCR', 'n'],
      ['GET', 'n'],
    ]
    const many = Array.from({ length: 1_100 }, (_, i) =>
      i % 11 === 0 ? ask('/', ['INCR', 'n']) : ask('/multi-exec', transaction),
    )
    for (const body of await Promise.all(many)) {
      if (!Array.isArray(body)) continue
      const [first, firstText, second, secondText] = body.map(({ result }) => Number(result))
      expect([firstText, second, secondText]).toEqual([first, Number(first) + 1, Number(first) + 1])
    }
    expect((await run('GET', 'n')).body).toEqual({ result: '2100' })
  })
})

it('the gateway answers /health without a token', async () => {
  const response = await fetch(`${rig.restUrl}/health`)
  expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ status: 'ok' })])
})

/** Sends a body without a declared length. Resolves to the status. */
function chunkedPost(body: Buffer): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { ...AUTHORIZATION, 'transfer-encoding': 'chunked' }
    const outgoing = request(rig.restUrl, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
