import { connect } from 'node:net'
import Type from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endpoint } from '../contract/endpoint.js'
import type { Authenticator, Caller } from './caller.js'
import { HttpServer, reply, route } from './index.js'

const caller = (access: 'read' | 'write'): Caller => ({
  accountId: 'acc',
  email: 'a@b.c',
  accountType: 'paid',
  source: 'API_KEY - first',
  access,
  ip: '127.0.0.1',
})

const authenticator: Authenticator = {
  basic: (header) =>
    header === 'Basic good' ? caller('write') : header === 'Basic reader' ? caller('read') : undefined,
  bearer: (token) => (token === 'good' ? caller('write') : undefined),
}

const shape = (id: string, path: string) => ({
  id,
  service: 'queue' as const,
  topic: 'Server' as const,
  path,
  summary: id,
  description: id,
  errors: [],
})

const create = endpoint({
  ...shape('create', '/v2/things'),
  method: 'POST',
  auth: 'basic',
  access: 'write',
  query: Type.Object({ many: Type.Optional(Type.Array(Type.Integer())) }),
  body: {
    kind: 'json',
    schema: Type.Object({
      name: Type.String({ minLength: 1 }),
      platform: Type.Enum(['aws', 'gcp']),
      size: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
    }),
  },
  success: { status: 200, description: 'made', body: Type.Object({}) },
})
const strict = endpoint({
  ...shape('strict', '/v2/strict'),
  method: 'DELETE',
  auth: 'basic',
  access: 'write',
  body: {
    kind: 'json',
    optional: true,
    schema: Type.Object({ label: Type.Optional(Type.String()) }, { additionalProperties: false }),
  },
  success: { status: 200, description: 'done', body: Type.Object({}) },
})
const publish = endpoint({
  ...shape('publish', '/v2/publish/{+destination}'),
  method: 'POST',
  auth: 'bearer',
  access: 'write',
  scopes: [],
  params: Type.Object({ destination: Type.String() }),
  body: { kind: 'raw' },
  success: { status: 200, description: 'taken', body: Type.Any() },
})
const failing = endpoint({
  ...shape('failing', '/v2/failing/{how}'),
  method: 'GET',
  auth: 'none',
  access: 'read',
  params: Type.Object({ how: Type.String() }),
  body: { kind: 'none' },
  success: { status: 200, description: 'never', body: Type.Any() },
})

const internalErrors: unknown[] = []
const settings = {
  service: 'queue',
  host: '127.0.0.1',
  port: 0,
  bodyLimitBytes: 1_000,
  authenticator,
  version: '1.2.3',
  publicUrl: 'http://localhost:8702',
  onInternalError: (error: unknown) => internalErrors.push(error),
} as const
const server = new HttpServer({
  ...settings,
  routes: [
    route(create, async ({ body, query, caller }) => ({ body, query, account: caller.accountId })),
    route(strict, async ({ body }) => ({ got: body ?? 'nothing' })),
    route(publish, async ({ params, body, headers }) =>
      reply(
        202,
        { ...params, bytes: Buffer.from(body).toString('hex'), type: headers['content-type'] },
        { 'x-extra': 'yes' },
      ),
    ),
    route(failing, async ({ params }) => {
      if (params.how === 'by-its-answer') return { size: 1n }
      throw new Error(`secret ${params.how}`)
    }),
  ],
})

let base = ''
beforeAll(async () => {
  await server.start()
  base = `http://127.0.0.1:${server.port}`
})
afterAll(() => server.stop())

async function ask(method: string, path: string, body?: string | Buffer, headers: Record<string, string> = {}) {
  const options = {
    method,
    headers: { authorization: 'Basic good', ...headers },
    ...(body === undefined ? {} : { body }),
  }
  const response = await fetch(base + path, options)
  const text = await response.text()
  return { status: response.status, headers: response.headers, json: text === '' ? undefined : JSON.parse(text) }
}

/** Sends raw bytes and returns the whole response. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(server.port, '127.0.0.1', () => socket.write(bytes, 'latin1'))
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

describe('a declared endpoint', () => {
  it('passes parsed values to its handler and ignores unknown fields', async () => {
    const answer = await ask(
      'POST',
      '/v2/things?many=1&many=2',
      JSON.stringify({ name: 'x', platform: 'aws', more: true }),
    )
    expect(answer.status).toBe(200)
    expect(answer.json).toMatchObject({ body: { name: 'x', platform: 'aws' }, query: { many: [1, 2] }, account: 'acc' })
  })

  it.each([
    ['{"platform":"aws"}', '`name` is required: a string.'],
    ['{"name":"x"}', '`platform` is required: one of aws, gcp.'],
    ['{"name":"x","platform":"azure"}', '`platform` must be one of aws, gcp; found "azure".'],
    ['{"name":5,"platform":"aws"}', '`name` must be a string; found 5.'],
    ['{"name":"x","platform":"aws","size":"5"}', '`size` must be an integer; found "5".'],
    ['{"name":"x","platform":"aws","size":1.5}', '`size` must be an integer; found 1.5.'],
    ['{"name":"x","platform":"aws","size":-1}', '`size` must be at least 0; found -1.'],
    ['{"name":"x","platform":"aws","size":1e300}', '`size` must be at most 10; found 1e+300.'],
    ['[]', 'The request body must be an object; found [].'],
    [`{"name":${'['.repeat(64)}${']'.repeat(64)}}`, 'the limit is 64 levels'],
  ])('refuses the body %s', async (body, problem) => {
    const answer = await ask('POST', '/v2/things', body)
    expect(answer.status).toBe(400)
    expect(answer.json.error).toContain(problem)
  })

  it('refuses a body that is not JSON or not UTF-8, with a reason', async () => {
    for (const body of ['{"name":', '{"name":NaN}', Buffer.from([0x22, 0xff, 0x22])]) {
      const answer = await ask('POST', '/v2/things', body)
      expect(answer.status).toBe(400)
      expect(answer.json.error).toMatch(/^The request body is not valid JSON \(.+\)/)
    }
  })

  it('treats an empty body, {} and null the same if no field is required', async () => {
    for (const body of [undefined, '', 'null']) {
      expect((await ask('DELETE', '/v2/strict', body)).json).toEqual({ got: 'nothing' })
    }
    expect((await ask('DELETE', '/v2/strict', '{}')).json).toEqual({ got: {} })
  })

  it('names a misspelt field and suggests the right one', async () => {
    const answer = await ask('DELETE', '/v2/strict', '{"lable":"x"}')
    expect(answer).toMatchObject({ status: 400 })
    expect(answer.json.error).toContain('`lable` is not known here. Did you mean `label`?')
  })

  it('reads a chunked body', async () => {
    const answer = await raw(
      'POST /v2/publish/http://x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n',
    )
    expect(answer).toContain('"bytes":"616263"')
  })

  it('refuses a chunked body over the limit, and keeps the connection open', async () => {
    const head = 'POST /v2/things HTTP/1.1\r\nHost: x\r\nAuthorization: Basic good\r\nTransfer-Encoding: chunked\r\n'
    const large = `${head}\r\n3e9\r\n${'x'.repeat(1_001)}\r\n0\r\n\r\n`
    const answers = await raw(`${large}GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200'])
  })

  it('reports no internal error when a client disconnects during a body', async () => {
    const before = internalErrors.length
    await new Promise<void>((resolve) => {
      const socket = connect(server.port, '127.0.0.1', () => {
        const head = 'POST /v2/things HTTP/1.1\r\nHost: x\r\nAuthorization: Basic good\r\nContent-Length: 100\r\n\r\n{'
        socket.write(head, () => socket.destroy())
      })
      socket.once('close', () => resolve())
    })
    // After two later responses, the server would have reported the error.
    for (let n = 0; n < 2; n++) await fetch(`${base}/health`)
    expect(internalErrors).toHaveLength(before)
  })

  it('reads bodies of any content type', async () => {
    const body = JSON.stringify({ name: 'x', platform: 'aws' })
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'nonsense',
      'application/json; charset=UTF-8',
    ]) {
      expect((await ask('POST', '/v2/things', body, { 'content-type': type })).status).toBe(200)
    }
  })
})

describe('credentials', () => {
  it.each([[''], ['Basic bad'], ['Bearer good'], ['nonsense']])('refuses the header "%s"', async (authorization) => {
    const answer = await ask('POST', '/v2/things', '{}', { authorization })
    expect(answer.status).toBe(401)
    expect(answer.json.error).toMatch(/^Unauthorized/)
  })

  it('refuses a write with a read-only key before it reads the body', async () => {
    const answer = await ask('POST', '/v2/things', 'not json', { authorization: 'Basic reader' })
    expect(answer.status).toBe(403)
    expect(answer.json.error).toContain('Readonly API key')
  })

  it('accepts the queue token in the header, with any case of the scheme, or in the query', async () => {
    for (const authorization of ['Bearer good', 'bearer good'])
      expect((await ask('POST', '/v2/publish/http://x', '', { authorization })).status).toBe(202)
    const inQuery = (pair: string) => ask('POST', `/v2/publish/http://x?${pair}`, '', { authorization: '' })
    for (const pair of ['qstash_token=good', 'qstash%5fto%6Ben=good']) expect((await inQuery(pair)).status).toBe(202)
    expect((await inQuery('qstash_token=bad')).status).toBe(401)
  })

  it('accepts the token in the query when a webhook has another Authorization header', async () => {
    const authorization = 'Bearer of-the-sender'
    expect((await ask('POST', '/v2/publish/http://x?qstash_token=good', '', { authorization })).status).toBe(202)
    expect((await ask('POST', '/v2/publish/http://x?qstash_token=bad', '', { authorization })).status).toBe(401)
  })

  it('answers 431 when the headers are too long', async () => {
    const long = await ask('POST', '/v2/publish/http://x', '', {
      authorization: 'Bearer good',
      'x-long': 'x'.repeat(60_000),
    })
    expect(long.status).toBe(202)
    const longer = await ask('POST', '/v2/publish/http://x', '', {
      authorization: 'Bearer good',
      'x-long': 'x'.repeat(70_000),
    })
    expect(longer).toMatchObject({ status: 431, json: { error: expect.stringContaining('65536 bytes') } })
  })
})

describe('a path that ends in a raw rest', () => {
  it('keeps the destination byte for byte', async () => {
    const target = '/v2/publish/https://Ex.com:8443/a%20b//x%2Fy?foo=bar&u=http://z/y%zz'
    const answer = await raw(
      `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: odd\r\nContent-Length: 2\r\nConnection: close\r\n\r\n\x00\xff`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 202/)
    expect(answer.toLowerCase()).toContain('x-extra: yes')
    expect(answer).toContain('"destination":"https://Ex.com:8443/a%20b//x%2Fy?foo=bar&u=http://z/y%zz"')
    expect(answer).toContain('"type":"odd"')
  })

  it('does not mix up the destinations of concurrent requests', async () => {
    let letAllGo = (): void => undefined
    const allAreHere = new Promise<void>((resolve) => (letAllGo = resolve))
    let here = 0
    const late = route(publish, async (call) => {
      if (++here === 2) letAllGo()
      await allAreHere
      return call.params
    })
    const slow = new HttpServer({ ...settings, routes: [late] })
    await slow.start()
    const send = async (destination: string) => {
      const url = `http://127.0.0.1:${slow.port}/v2/publish/${destination}`
      return (await fetch(url, { method: 'POST', headers: { authorization: 'Bearer good' } })).json()
    }
    const answers = await Promise.all([send('http://a'), send('http://b')])
    expect(answers).toEqual([{ destination: 'http://a' }, { destination: 'http://b' }])
    await slow.stop()
  })

  it('passes an empty rest to the handler', async () => {
    const answer = await ask('POST', '/v2/publish/', '', { authorization: 'Bearer good' })
    expect(answer.json).toMatchObject({ destination: '' })
  })
})

describe('error responses', () => {
  it('answers 404 for unknown paths and 405 with the allowed methods for known ones', async () => {
    const unknown = await ask('GET', '/v2/nothing?secret=1')
    expect(unknown).toMatchObject({ status: 404, json: { error: expect.stringContaining('GET /v2/nothing.') } })
    const wrong = await ask('PUT', '/v2/things', '{}')
    expect(wrong).toMatchObject({ status: 405, json: { error: expect.stringContaining('Use POST') } })
    expect(wrong.headers.get('allow')).toBe('POST')
  })

  it('answers 413 for a body over the limit', async () => {
    for (const length of [1_001, 20_000_000]) {
      const answer = await ask('POST', '/v2/things', 'x'.repeat(length))
      expect(answer).toMatchObject({ status: 413, json: { error: expect.stringContaining('1000 bytes') } })
    }
  })

  it('answers 400 in JSON to bytes that are not HTTP and to paths that cannot be decoded or are too long', async () => {
    expect(await raw('HELLO\r\n\r\n')).toMatch(/^HTTP\/1.1 400[\s\S]+\{"error":/)
    for (const part of ['%zz', 'a'.repeat(2_049)]) {
      expect(await ask('GET', `/v2/failing/${part}`)).toMatchObject({ status: 400, json: { error: expect.anything() } })
    }
  })

  it('shows only a reference for an internal error, and reports the error', async () => {
    const answer = await ask('GET', '/v2/failing/detail')
    expect(answer.status).toBe(500)
    expect(answer.json.error).not.toContain('secret')
    expect(String(internalErrors.at(-1))).toContain('secret detail')
    expect((await ask('GET', '/v2/failing/by-its-answer')).status).toBe(500)
  })
})

describe('the built-in pages', () => {
  it('reports its health', async () => {
    expect(await ask('GET', '/health')).toMatchObject({ status: 200, json: { status: 'ok', version: '1.2.3' } })
  })

  it('describes every endpoint as OpenAPI 3.1', async () => {
    const { json } = await ask('GET', '/openapi.json')
    expect(json.openapi).toBe('3.1.0')
    expect(Object.keys(json.paths)).toEqual([
      '/v2/things',
      '/v2/strict',
      '/v2/publish/{destination}',
      '/v2/failing/{how}',
    ])
    expect(json.paths['/v2/things'].post.responses['401'].content['application/json'].schema.$ref).toMatch(/Error$/)
  })
})

describe('a server that stops', () => {
  /** A server whose only operation never completes. */
  async function endless(stopGraceMs = 1): Promise<{ stopping: HttpServer; begun: Promise<void> }> {
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const never = route(strict, () => {
      begin()
      return new Promise(() => undefined)
    })
    const stopping = new HttpServer({ ...settings, routes: [never], stopGraceMs })
    await stopping.start()
    return { stopping, begun }
  }

  /** Opens a connection and sends the start of a request; resolves when the connection is closed. */
  function sendTo(to: HttpServer, bytes: string): Promise<void> {
    const socket = connect(to.port, '127.0.0.1', () => socket.write(bytes))
    socket.on('error', () => undefined).resume()
    return new Promise((resolve) => socket.once('close', () => resolve()))
  }

  const head = (length: number) =>
    `DELETE /v2/strict HTTP/1.1\r\nHost: x\r\nAuthorization: Basic good\r\nContent-Length: ${length}\r\n\r\n`

  it('does not wait for incomplete requests and for connections that nothing was sent on', async () => {
    const { stopping } = await endless(600_000)
    const sent = [`${head(100)}{`, '', 'GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /hea']
    const closed = sent.map((bytes) => sendTo(stopping, bytes))
    for (let each = 0; each < 5; each++) await fetch(`http://127.0.0.1:${stopping.port}/health`)
    await stopping.stop()
    await Promise.all(closed)
  })

  it('waits for requests in flight within its grace period', async () => {
    const { stopping, begun } = await endless()
    const closed = sendTo(stopping, `${head(2)}{}`)
    await begun
    await stopping.stop()
    await closed
  })
})
