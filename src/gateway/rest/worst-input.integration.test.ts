import { request } from 'node:http'
import { createConnection } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { sampled } from '../../../test/support/index.js'
import { leastLoopDelay } from '../testing/loop-delay.js'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

/** Longest block of the event loop: as long as this many units take (`unitMs`), about 200 ms. Mostly it is below 50 ms. */
const BOUND_UNITS = 10
const MIB = 2 ** 20
/** Largest body: the request limit of the smaller plans. */
const BODY_BYTES = 9.9 * MIB
const COMMANDS_PER_SECOND = 20_000

let rig: Rig

beforeAll(async () => {
  rig = await startRig({ maxRequestBytes: 10 * MIB, maxCommandsPerSecond: COMMANDS_PER_SECOND })
})

interface Sent {
  readonly url?: string
  readonly path?: string
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

interface Got {
  readonly status: number
  readonly bytes: number
  /** Beginning of the answer. */
  readonly text: string
}

/** Sends a request, reads its answer and drops it. */
function send({ url = rig.restUrl, path = '/', token = CREDENTIALS.token, headers = {}, body }: Sent): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-length': Buffer.byteLength(body), ...headers },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      let bytes = 0
      let text = ''
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (text.length < 200) text += chunk.toString('latin1', 0, 200)
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, bytes, text }))
      response.on('error', reject)
    })
    sent.end(body)
  })
}

async function measure(name: string, work: () => Promise<Got>, boundUnits = BOUND_UNITS): Promise<Got> {
  let got: Got | undefined
  const { longestMs, longestUnits } = await leastLoopDelay(boundUnits / 2, async () => {
    got = await work()
  })
  process.stdout.write(`  ${name}: others waited for ${longestMs.toFixed(0)} ms of work at most\n`)
  expect(longestUnits).toBeLessThan(boundUnits)
  if (!got) throw new Error('nothing was measured')
  return got
}

const list = (item: string, bytes = BODY_BYTES): Buffer =>
  Buffer.from(`[${new Array<string>(Math.floor(bytes / (item.length + 1))).fill(item).join(',')}]`)
const times = (count: number, item: string): string => new Array<string>(count).fill(item).join(',')

const TOO_MANY_COMMANDS = `{"error":"ERR max commands of one request exceeded. Limit: ${COMMANDS_PER_SECOND}. Send them in several requests."}`
const TOO_MANY_ARGUMENTS =
  '{"error":"ERR max arguments of one command exceeded. Limit: 262144. Send several commands."}'
const TOO_MANY_VALUES = '{"error":"ERR max arguments of one request exceeded. Limit: 524288. Send several requests."}'
const TOO_LONG_TO_ANSWER = '{"error":"ERR max request size exceeded. Limit: 262144 bytes, Actual: 9000011 bytes"}'
const NESTED = '{"error":"ERR objects and arrays are not supported as arguments, send them as text"}'

describe('the event loop is not blocked by a refused body:', () => {
  const cases = [
    ['millions of empty commands', '/pipeline', () => list('[]'), TOO_MANY_COMMANDS],
    ['millions of empty commands in a transaction', '/multi-exec', () => list('[]'), TOO_MANY_COMMANDS],
    ['hundreds of thousands of commands', '/pipeline', () => list('["PING"]'), TOO_MANY_COMMANDS],
    ['one command of millions of numbers', '/', () => list('1'), TOO_MANY_ARGUMENTS],
    ['one command of millions of words', '/', () => list('"a"'), TOO_MANY_ARGUMENTS],
    ['one command of millions in a pipeline', '/pipeline', () => `[${list('1', BODY_BYTES - 8)}]`, TOO_MANY_ARGUMENTS],
    ['commands that hold millions of words', '/pipeline', () => list(`[${times(1_000, '"a"')}]`), TOO_MANY_VALUES],
    ['millions of lists in a command', '/pipeline', () => `[["SET",${list('[]', BODY_BYTES - 32)}]]`, TOO_MANY_VALUES],
    ['millions of objects', '/', () => list('{}'), TOO_MANY_VALUES],
    ['objects with millions of members', '/pipeline', () => `[[{${times(2 ** 20, '"a":1')}}]]`, NESTED],
    [
      'a password of millions of letters',
      '/',
      () => `["ACL","GENTOKEN","${'x'.repeat(9_000_000)}"]`,
      TOO_LONG_TO_ANSWER,
    ],
    ['lists within lists', '/', () => '['.repeat(BODY_BYTES), NESTED],
    ['objects within objects', '/pipeline', () => '{"a":'.repeat(BODY_BYTES / 5), NESTED],
    [
      'a number of millions of digits',
      '/',
      () => `["SET","k",${'1'.repeat(BODY_BYTES - 32)}]`,
      '{"error":"ERR a number has more than 1024 digits, send it as text"}',
    ],
    [
      'no JSON',
      '/pipeline',
      () => `[[${' '.repeat(BODY_BYTES)}x`,
      '{"error":"ERR failed to parse pipeline request: the body is not JSON"}',
    ],
    [
      'a text that never ends',
      '/',
      () => `["SET","k","${'\\"'.repeat(BODY_BYTES / 2 - 16)}`,
      '{"error":"ERR failed to parse command: the body is not JSON"}',
    ],
  ] as const
  it.each(sampled(cases, 10))('%s', async (name, path, body, error) => {
    const bytes = body()
    const got = await measure(name, () => send({ path, body: bytes, token: CREDENTIALS.readerToken }))
    expect(got.text).toBe(error)
  })
})

describe('the event loop is not blocked by a large body that is allowed:', () => {
  const pipeline = (command: string): Buffer => list(command, COMMANDS_PER_SECOND * (command.length + 1))
  const cases = [
    ['as many commands as there may be', '/pipeline', () => pipeline('["GET","k"]')],
    ['as many empty commands', '/pipeline', () => pipeline('[]')],
    ['as many unknown commands', '/pipeline', () => pipeline('["NONE"]')],
    ['as many with a number', '/pipeline', () => pipeline('["SET","k",1]')],
    ['as many in a transaction', '/multi-exec', () => pipeline('["SET","k",1]')],
    ['as many that are large', '/pipeline', () => list(`["SET","k","${'x'.repeat(540)}"]`)],
    ['one command of as many words', '/', () => `["DEL",${times(262_000, '"k"')}]`],
    ['one command of as many numbers', '/', () => `["DEL",${times(262_000, '1e3')}]`],
    ['one such command in a pipeline', '/pipeline', () => `[["MSET",${times(262_000, '1')}]]`],
    ['one in a transaction', '/multi-exec', () => `[["MSET",${times(262_000, '1')}]]`],
    ['a text of escapes', '/', () => `["SET","k","${'\\u00e9'.repeat(BODY_BYTES / 6 - 16)}"]`],
    ['a text of quotes', '/', () => `["SET","k","${'\\"'.repeat(BODY_BYTES / 2 - 16)}"]`],
    ['a text of other alphabets', '/', () => `["SET","k","${'é'.repeat(BODY_BYTES / 2 - 16)}"]`],
    ['blanks', '/', () => `["PING"${' '.repeat(BODY_BYTES)}]`],
  ] as const
  it.each(sampled(cases, 10))('%s', async (name, path, body) => {
    const bytes = body()
    expect((await measure(name, () => send({ path, body: bytes }))).status).toBe(200)
  })

  it('a path of many arguments', async () => {
    const path = `/mget${'/a'.repeat(6_000)}`
    expect((await measure('a path', () => send({ path, body: '' }))).status).toBe(200)
  })
})

describe('the event loop is not blocked by a large reply:', () => {
  const NUMBERS = 'local t = {} for i = 1, 600000 do t[i] = 1 end return t'
  const WORDS = `local t = {} for i = 1, 600000 do t[i] = '"' end return t`
  const cases = [
    ['600,000 numbers', { body: JSON.stringify(['EVAL', NUMBERS, 0]) }],
    ['600,000 words', { body: JSON.stringify(['EVAL', WORDS, 0]) }],
    [
      '600,000 words in base64',
      { body: JSON.stringify(['EVAL', WORDS, 0]), headers: { 'upstash-encoding': 'base64' } },
    ],
    [
      'several times as many numbers of a pipeline',
      { path: '/pipeline', body: list(JSON.stringify(['EVAL', NUMBERS, 0]), 250) },
    ],
    [
      'those with an error among them',
      { path: '/pipeline', body: `[["NONE"],${JSON.stringify(['EVAL', NUMBERS, 0])}]` },
    ],
    [
      'those as bytes',
      {
        path: '/pipeline',
        body: `[["NONE"],${JSON.stringify(['EVAL', NUMBERS, 0])}]`,
        headers: { 'upstash-response-format': 'resp2' },
      },
    ],
    ['600,000 numbers of a transaction', { path: '/multi-exec', body: JSON.stringify([['EVAL', NUMBERS, 0]]) }],
  ] as const
  it.each(sampled(cases, 10))('%s', async (name, sent) => {
    const got = await measure(name, () => send(sent))
    expect([got.status, got.bytes > 1_000_000]).toEqual([200, true])
  })
})

describe('the event loop is not blocked by the longest text of the largest plan:', () => {
  const text = 'é'.repeat(45 * MIB)
  const base64 = { 'upstash-encoding': 'base64' }
  const inBase64 = 'w6nDqcOp'
  const MANY = 'local t = {} for i = 1, 12000000 do t[i] = 1 end return t'
  let url: string
  beforeAll(async () => {
    ;({ restUrl: url } = await startRig({ maxRequestBytes: 100 * MIB, maxEntryBytes: 100 * MIB }))
    const body = Buffer.from(`["SET","k","${text}"]`)
    expect((await measure('the text', () => send({ url, body }))).status).toBe(200)
  })

  const cases = [
    [
      'in a transaction',
      { path: '/multi-exec', body: '[["STRLEN","k"],["GET","k"]]' },
      `[{"result":${90 * MIB}},{"result":"é`,
    ],
    ['in an array', { body: '["MGET","k","none"]' }, '{"result":["é'],
    ['in an array of a pipeline', { path: '/pipeline', body: '[["MGET","k"]]' }, '[{"result":["é'],
    ['in an array of a transaction', { path: '/multi-exec', body: '[["MGET","k"]]' }, '[{"result":["é'],
    ['in an array in base64', { body: '["MGET","k"]', headers: base64 }, `{"result":["${inBase64}`],
    [
      'beside 12 million numbers in a transaction',
      { path: '/multi-exec', body: `[["ACL","WHOAMI"],["EVAL","${MANY}",0]]` },
      '[{"error":"ERR Command is not available',
    ],
    ['as a status', { body: `["EVAL","return redis.status_reply(redis.call('GET','k'))",0]` }, '{"result":"é'],
    [
      'as an error',
      { body: `["EVAL","return redis.error_reply('ERR ' .. redis.call('GET','k'))",0]` },
      '{"error":"ERR é',
    ],
  ] as const
  it.each(sampled(cases, 10))(
    '%s',
    async (name, sent, begin) => {
      const got = await measure(name, () => send({ url, ...sent }))
      expect(Buffer.from(got.text, 'latin1').toString()).toContain(begin)
      if (!begin.includes('error')) expect(got.bytes).toBeGreaterThan(90 * MIB)
    },
    60_000,
  )
})

describe('the event loop is not blocked by many short requests at once:', () => {
  const REQUESTS = 50_000
  const cases = [
    ['with a method that is not allowed', 'DELETE / HTTP/1.1\r\nHost:x\r\n\r\n'],
    ['for a path that needs no token', 'GET /livez HTTP/1.1\r\nHost:x\r\n\r\n'],
  ] as const
  it.each(cases)('%s', async (name, text) => {
    const sendAll = async (): Promise<Got> => {
      const socket = createConnection(rig.gateway.restPort, '127.0.0.1')
      socket.write(text.repeat(REQUESTS) + text.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
      let bytes = 0
      for await (const chunk of socket) bytes += (chunk as Buffer).length
      return { status: 200, bytes, text: '' }
    }
    await measure(name, sendAll, BOUND_UNITS / 3)
  })
})

it('a reply that is nested too deeply becomes an error in its slot', async () => {
  const NESTED = 'local t = {} for i = 1, 6000 do t = {t} end return t'
  const error =
    'ERR the reply is nested too deeply for JSON. Limit: 1000 levels. The command has been executed. Request less, or send Upstash-Response-Format: resp2.'
  const one = JSON.stringify(['EVAL', NESTED, 0])
  expect(await send({ body: one })).toMatchObject({ status: 400, text: JSON.stringify({ error }) })
  const three = `[${[one, '["PING"]'].join(',')}]`
  const text = `[${JSON.stringify({ error })},{"result":"PONG"}]`
  expect(await send({ path: '/pipeline', body: three })).toMatchObject({ status: 200, text })
  expect(await send({ path: '/multi-exec', body: three })).toMatchObject({ status: 200, text })
})
