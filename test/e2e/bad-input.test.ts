import { readdirSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { basicOf, waitFor } from '../support/index.js'
import { createDatabase, LEAST, type NewDatabase, useService } from './support/service.js'

/**
 * Invalid requests. Each one gets an error that says what is wrong and what to do, reveals nothing about the machine,
 * and changes nothing: the tests compare the whole visible state before and after each kind of request.
 */

const BODY_LIMIT_BYTES = 2 ** 20
const service = useService({ env: { HOMEPORT_QUEUE_BODY_LIMIT_BYTES: String(BODY_LIMIT_BYTES) } })
const NOWHERE = 'http://127.0.0.1:9/nowhere'
let database: NewDatabase
let before: unknown

beforeAll(async () => {
  database = await createDatabase(service)
  await service.queue.publish({ url: NOWHERE, body: 'x', delay: '1d', label: 'kept' })
  const { messageId } = await service.queue.publish({ url: NOWHERE, body: 'x', retries: 0 })
  const isDead = async () => (await service.queue.dlq.listMessages({ filter: { messageId } })).messages.length === 1
  await waitFor(isDead, { what: 'a dead letter' })
  for (const workflowRunId of ['run-1', 'run-2']) {
    await service.workflow.trigger({ url: NOWHERE, delay: '1d', workflowRunId })
  }
  before = await state()
})

/** All state that a request could have changed. */
async function state(): Promise<unknown> {
  const { homeport } = service
  const folders = readdirSync(join(homeport.place.dataDir, 'databases')).sort()
  const targets = ['/v2/workflows/logs', '/v2/events', '/v2/dlq', '/v2/workflows/bulkActions', '/v2/keys']
  const answers = await Promise.all(targets.map((target) => homeport.queue('GET', target)))
  const databases = await homeport.api('GET', '/v2/redis/databases')
  return { folders, databases: databases.body, queue: answers.map(({ body }) => body), engines: engines() }
}

const expectNoChange = (): void => it('and changes nothing', async () => expect(await state()).toEqual(before))

const engines = (): string[] =>
  service.homeport
    .processes()
    .map(({ pid, command }) => `${pid} ${command}`)
    .sort()

interface Refused {
  readonly status: number
  readonly error: string
  readonly headers: Headers
}

const MACHINE = /\/(tmp|work|home|root|usr)\/|node_modules|\.(js|ts):\d|\bat \w+[ .]\w*\(|homeport-data/

/** Checks the rules for every refusal. */
async function refusalOf(response: Response): Promise<Refused> {
  const body: unknown = await response.json()
  expect(body).toEqual({ error: expect.any(String) })
  const { error } = body as { error: string }
  expect(error).toMatch(/[.!]$/)
  expect(error).not.toMatch(MACHINE)
  expect(error).not.toContain(service.homeport.credentials.apiKey)
  expect(error).not.toContain(service.homeport.credentials.queueToken)
  expect(error.length).toBeLessThan(1_500)
  return { status: response.status, error, headers: response.headers }
}

type Body = string | Uint8Array<ArrayBuffer> | object | undefined

function bytesOf(body: Body): string | Blob | undefined {
  if (body === undefined || typeof body === 'string') return body
  return body instanceof Uint8Array ? new Blob([body]) : JSON.stringify(body)
}

function authorization(of: 'api' | 'queue'): string {
  const { email, apiKey, queueToken } = service.homeport.credentials
  return of === 'queue' ? `Bearer ${queueToken}` : basicOf(email, apiKey)
}

async function send(of: 'api' | 'queue', line: string, body: Body, headers: Record<string, string> = {}) {
  const [method = '', target = ''] = line.split(' ')
  const origin = of === 'api' ? service.homeport.apiUrl : service.homeport.queueUrl
  const sent = bytesOf(body)
  const response = await fetch(origin + target, {
    method,
    headers: { authorization: authorization(of), ...headers },
    ...(sent === undefined ? {} : { body: sent }),
  })
  return refusalOf(response)
}

const without = (field: keyof typeof LEAST): object => ({ ...LEAST, [field]: undefined })
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const CREATE = 'POST /v2/redis/database'

describe('the management API refuses', () => {
  type Row = readonly [what: string, line: string, body: Body, status: number, text: string | RegExp]
  it.each<Row>([
    ['JSON that ends too soon', CREATE, '{"database_name": "x"', 400, 'not valid JSON'],
    ['what is no JSON at all', CREATE, 'database_name=x', 400, 'not valid JSON'],
    ['bytes that are no UTF-8', CREATE, new Uint8Array([123, 34, 255, 34, 125]), 400, 'UTF-8'],
    ['NaN, which JSON does not have', CREATE, '{"budget": NaN}', 400, 'not valid JSON'],
    ['a list as the body', CREATE, [LEAST], 400, 'must be an object'],
    ['a text as the body', CREATE, '"x"', 400, 'must be an object'],
    ['a list nested without end', CREATE, nested(200_000), 400, '64 levels'],
    ['a value nested without end', CREATE, `{"database_name": ${nested(200_000)}}`, 400, '64 levels'],
    ['nothing', CREATE, undefined, 400, '`database_name` is required'],
    ['null', CREATE, 'null', 400, '`database_name` is required'],
    ['a missing name', CREATE, without('database_name'), 400, '`database_name` is required'],
    ['a missing platform', CREATE, without('platform'), 400, '`platform` is required: one of aws, gcp'],
    ['a missing region', CREATE, without('primary_region'), 400, '`primary_region` is required: one of us-east-1'],
    ['an unknown platform', CREATE, { ...LEAST, platform: 'azure' }, 400, 'one of aws, gcp; found "azure"'],
    [
      'an unknown region',
      CREATE,
      { ...LEAST, primary_region: 'mars-1' },
      400,
      /one of us-east-1, .*asia-northeast1; found "mars-1"/,
    ],
    [
      'an unknown read region',
      CREATE,
      { ...LEAST, read_regions: ['us-central1'] },
      400,
      /`read_regions\[0\]` must be one of .*found "us-central1"/,
    ],
    ['an unknown plan', CREATE, { ...LEAST, plan: 'gold' }, 400, /one of free, payg, .*fixed_500gb; found "gold"/],
    ['a region of the other platform', CREATE, { ...LEAST, primary_region: 'us-east4' }, 400, 'Send platform "gcp"'],
    ['a platform of the other region', CREATE, { ...LEAST, platform: 'gcp' }, 400, 'Send platform "aws"'],
    [
      'a repeated region',
      CREATE,
      { ...LEAST, read_regions: ['eu-west-1', 'eu-west-1'] },
      400,
      'must not repeat a region',
    ],
    [
      'the primary among the read regions',
      CREATE,
      { ...LEAST, read_regions: ['us-east-1'] },
      400,
      'must not hold the primary',
    ],
    [
      'read regions on gcp',
      CREATE,
      { ...LEAST, platform: 'gcp', primary_region: 'us-east4', read_regions: ['eu-west-1'] },
      400,
      'must be empty on platform "gcp"',
    ],
    [
      'two read regions on plan free',
      CREATE,
      { ...LEAST, plan: 'free', read_regions: ['eu-west-1', 'eu-west-2'] },
      400,
      'at most 1 on plan "free"',
    ],
    ['a text where a number belongs', CREATE, { ...LEAST, budget: '5' }, 400, '`budget` must be an integer; found "5"'],
    ['a text where a flag belongs', CREATE, { ...LEAST, eviction: 'true' }, 400, '`eviction` must be a boolean'],
    ['a number where a flag belongs', CREATE, { ...LEAST, tls: 1 }, 400, '`tls` must be a boolean; found 1'],
    ['an object where a list belongs', CREATE, { ...LEAST, read_regions: {} }, 400, '`read_regions` must be an array'],
    ['a negative number', CREATE, { ...LEAST, budget: -1 }, 400, '`budget` must be at least 0; found -1'],
    ['a huge number', CREATE, { ...LEAST, budget: 1e15 }, 400, '`budget` must be at most 1000000'],
    ['a number beyond all', CREATE, JSON.stringify(LEAST).replace('}', ',"budget":1e999}'), 400, '`budget` must be'],
    ['a fraction', CREATE, { ...LEAST, budget: 0.5 }, 400, '`budget` must be an integer; found 0.5'],
    ['an empty name', CREATE, { ...LEAST, database_name: '  ' }, 400, '1 to 128 characters'],
    ['a name without end', CREATE, { ...LEAST, database_name: 'x'.repeat(129) }, 400, 'found 129'],
    ['a line break in a name', CREATE, { ...LEAST, database_name: 'a\nb' }, 400, 'control characters'],
    ['a zero byte in a name', CREATE, { ...LEAST, database_name: 'a\0b' }, 400, 'control characters'],
    ['an escape sequence in a name', CREATE, { ...LEAST, database_name: 'a\u001b[31m' }, 400, 'control characters'],
    ['10 MB where 1 MB is the limit', CREATE, 'x'.repeat(10_000_000), 413, '1048576 bytes'],
    ['an unknown path', 'GET /v2/redis/database', undefined, 405, 'Use POST'],
    ['an unknown route', 'GET /v2/redis/tables', undefined, 404, '/docs'],
    ['the operations of the queue without its token', 'GET /v2/events', undefined, 401, 'Bearer <QSTASH_TOKEN>'],
    ['a wrong method on a list', 'DELETE /v2/redis/databases', undefined, 405, 'Use GET'],
    ['a wrong method on a database', 'PUT /v2/redis/database/x', undefined, 405, 'Use GET or DELETE'],
    ['an unknown database', 'DELETE /v2/redis/database/no-such', '{}', 404, 'no database with the id "no-such"'],
    ['a path traversal', 'DELETE /v2/redis/database/..%2f..%2fstore', '{}', 404, 'database not found'],
    ['a percent sign that encodes nothing', 'GET /v2/redis/database/%zz', undefined, 400, '%'],
    ['a wrong query value', 'GET /v2/redis/databases?credentials=maybe', undefined, 400, 'one of hide, show'],
  ])('%s', async (_what, line, body, status, text) => {
    const refused = await send('api', line, body)
    expect(refused.error).toMatch(text)
    expect(refused.status).toBe(status)
    if (status === 405) expect(refused.headers.get('allow')).toMatch(/^[A-Z]+(, [A-Z]+)*$/)
  })

  it('an idempotency key that is too long', async () => {
    const refused = await send('api', CREATE, LEAST, { 'idempotency-key': 'k'.repeat(256) })
    expect(refused).toMatchObject({ status: 400, error: expect.stringContaining('255') })
  })
  expectNoChange()
})

describe('the queue refuses', () => {
  type Row = readonly [
    what: string,
    line: string,
    body: Body,
    headers: Record<string, string>,
    status: number,
    text: string | RegExp,
  ]
  const PUBLISH = `POST /v2/publish/${NOWHERE}`
  it.each<Row>([
    ['no destination', 'POST /v2/publish/', 'x', {}, 400, 'destination is empty'],
    ['a destination that is no URL', 'POST /v2/publish/http://', 'x', {}, 400, 'not a valid URL'],
    ['a destination of another scheme', 'POST /v2/publish/file:///etc/passwd', 'x', {}, 400, 'http:// or https://'],
    ['an unknown URL group', 'POST /v2/publish/my-group', 'x', {}, 404, 'URL group "my-group"'],
    ['NaN retries', PUBLISH, 'x', { 'Upstash-Retries': 'NaN' }, 400, 'Upstash-Retries is "NaN"'],
    ['negative retries', PUBLISH, 'x', { 'Upstash-Retries': '-1' }, 400, 'Upstash-Retries is "-1"'],
    ['huge retries', PUBLISH, 'x', { 'Upstash-Retries': '999999999999' }, 400, 'Upstash-Retries'],
    ['too many retries', PUBLISH, 'x', { 'Upstash-Retries': '100000' }, 412, 'at most 1000'],
    ['a delay that is none', PUBLISH, 'x', { 'Upstash-Delay': 'soon' }, 400, 'Upstash-Delay is "soon"'],
    ['a delay without end', PUBLISH, 'x', { 'Upstash-Delay': '99999d' }, 412, 'Upstash-Delay'],
    ['a negative timeout', PUBLISH, 'x', { 'Upstash-Timeout': '-5s' }, 400, 'Upstash-Timeout is "-5s"'],
    ['an unknown method', PUBLISH, 'x', { 'Upstash-Method': 'BREW' }, 400, 'one of GET, POST, PUT, PATCH, DELETE'],
    ['code as a retry delay', PUBLISH, 'x', { 'Upstash-Retry-Delay': 'process.exit()' }, 400, 'Upstash-Retry-Delay'],
    ['a callback that is no URL', PUBLISH, 'x', { 'Upstash-Callback': 'me' }, 400, 'Upstash-Callback is "me"'],
    ['a batch that is no list', 'POST /v2/batch', { destination: NOWHERE }, {}, 400, 'must be an array'],
    ['a batch that is no JSON', 'POST /v2/batch', '[{"destination"', {}, 400, 'not valid JSON'],
    [
      'a batch of items without destination',
      'POST /v2/batch',
      [{ body: 'x' }],
      {},
      400,
      '`[0].destination` is required',
    ],
    ['10 MB where 1 MB is the limit', PUBLISH, 'x'.repeat(10_000_000), {}, 413, '1048576 bytes'],
    ['an unknown message', 'DELETE /v2/messages/msg_x', undefined, {}, 404, 'no pending message "msg_x"'],
    ['a misspelt filter of messages', 'DELETE /v2/messages?lable=kept', undefined, {}, 400, 'Did you mean `label`'],
    ['a misspelt filter in a body', 'DELETE /v2/messages', { lable: 'kept' }, {}, 400, 'Did you mean `label`'],
    ['an empty filter of messages', 'DELETE /v2/messages?label=', undefined, {}, 400, 'empty'],
    ['a misspelt filter of dead letters', 'DELETE /v2/dlq?dlqId=1', undefined, {}, 400, 'Did you mean `dlqIds`'],
    [
      'a source where only messages are meant',
      'DELETE /v2/dlq?source=workflow',
      undefined,
      {},
      400,
      '`source` is not known',
    ],
    [
      'a filter of runs over the dead letters of messages',
      'GET /v2/dlq?workflowUrl=http://x',
      undefined,
      {},
      400,
      'Send source=workflow',
    ],
    ['an unknown source', 'GET /v2/dlq?source=mars', undefined, {}, 400, 'one of message, workflow'],
    ['a retry of a misspelt filter', 'POST /v2/dlq/retry?labels=x', undefined, {}, 400, 'Did you mean `label`'],
    ['an unknown dead letter', 'POST /v2/dlq/retry/1-1', undefined, {}, 404, 'no dead letter "1-1"'],
    ['an unknown state of log entries', 'GET /v2/events?state=DONE', undefined, {}, 400, /one of CREATED, .*CANCELED/],
    ['a negative count', 'GET /v2/events?count=-1', undefined, {}, 400, '`count` must be at least 1'],
    ['a count that is no number', 'GET /v2/logs?count=NaN', undefined, {}, 400, '`count` must be an integer'],
    ['an invalid cursor', 'GET /v2/events?cursor=..%2f', undefined, {}, 400, 'cursor'],
    ['an unknown route', 'GET /v2/schedule', undefined, {}, 404, '/docs'],
    ['a wrong method', 'PUT /v2/keys', undefined, {}, 405, 'Use GET'],
    ['a wrong method on a publish', `GET /v2/publish/${NOWHERE}`, undefined, {}, 405, 'Use POST'],
  ])('%s', async (_what, line, body, headers, status, text) => {
    const refused = await send('queue', line, body, headers)
    expect(refused.error).toMatch(text)
    expect(refused.status).toBe(status)
  })
  expectNoChange()
})

describe('workflows refuse', () => {
  const CANCEL = 'DELETE /v2/workflows/runs'
  type Row = readonly [what: string, line: string, body: Body, status: number, text: string | RegExp]
  it.each<Row>([
    ['a misspelt filter', CANCEL, { lable: 'x' }, 400, 'Did you mean `label`'],
    ['a misspelt filter in the query', `${CANCEL}?workflowurl=x`, undefined, 400, 'Did you mean `workflowUrl`'],
    ['a singular', CANCEL, { workflowRunId: 'run-1' }, 400, 'Did you mean `workflowRunIds`'],
    ['a word of the client', CANCEL, { all: true }, 400, 'Leave the selector empty'],
    ['an empty filter', CANCEL, { label: '' }, 400, 'empty string'],
    ['an empty list of filters', CANCEL, { workflowUrl: [] }, 400, 'empty list'],
    ['null as ids', CANCEL, { workflowRunIds: null }, 400, 'string or a list of strings'],
    ['a number as a filter', CANCEL, { label: 7 }, 400, 'found 7'],
    ['dates the wrong way round', CANCEL, { fromDate: 20, toDate: 10 }, 400, 'must be before'],
    ['a date as text', CANCEL, { fromDate: '2026-01-01' }, 400, 'whole Unix milliseconds'],
    ['seconds', CANCEL, { fromDate: 1_700_000_000 }, 400, 'looks like seconds'],
    ['a date beyond all', CANCEL, '{"toDate": 1e999}', 400, 'found Infinity'],
    ['NaN as a date', `${CANCEL}?toDate=NaN`, undefined, 400, 'found "NaN"'],
    ['a negative count', CANCEL, { count: -1 }, 400, '0 or more'],
    ['a word as a flag', CANCEL, { dryRun: 'yes' }, 400, 'true or false'],
    ['one field with two values', `${CANCEL}?label=a`, { label: 'b' }, 400, 'different values'],
    ['broken JSON', CANCEL, '{"label": ', 400, 'not valid JSON'],
    ['a list as the selector', CANCEL, ['run-1'], 400, 'found a list'],
    ['a text as the selector', CANCEL, '"run-1"', 400, 'found a string'],
    ['a selector nested without end', CANCEL, `{"label": ${nested(100_000)}}`, 400, '64 levels'],
    ['an unknown run', `${CANCEL}/no-such`, undefined, 404, 'no workflow run "no-such"'],
    ['an unknown action', 'GET /v2/workflows/bulkActions/no-such', undefined, 404, 'no bulk action'],
    ['a trigger of no URL', 'POST /v2/trigger/', 'x', 400, 'destination is empty'],
    ['a batch of triggers that is no list', 'POST /v2/batch/trigger', {}, 400, 'must be an array'],
    ['a trigger without destination', 'POST /v2/batch/trigger', [{}], 400, '`[0].destination` is required'],
    ['a notification of nothing', 'POST /v2/notify/', 'x', 400, 'event id is missing'],
    ['a wait without a step', 'POST /v2/wait/paid', { url: NOWHERE }, 412, '`step` is required'],
    ['a wait of an unknown run', 'POST /v2/wait/paid', { url: NOWHERE, step: {} }, 412, 'Upstash-Workflow-RunId'],
    ['a log of an unknown state', 'GET /v2/workflows/logs?count=0', undefined, 400, '`count` must be at least 1'],
    ['a wrong method', 'POST /v2/workflows/runs', undefined, 405, 'Use DELETE'],
  ])('%s', async (_what, line, body, status, text) => {
    const refused = await send('queue', line, body)
    expect(refused.error).toMatch(text)
    expect(refused.status).toBe(status)
  })
  expectNoChange()
})

describe('the data plane refuses', () => {
  const rest = (line: string, body: Body, token = database.rest_token) => {
    const [method = '', target = ''] = line.split(' ')
    const sent = bytesOf(body)
    return fetch(database.rest_url + target, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(sent === undefined ? {} : { body: sent }),
    })
  }

  it.each<readonly [what: string, line: string, body: Body, status: number, text: string | RegExp]>([
    ['broken JSON', 'POST /', '["SET"', 400, 'failed to parse command'],
    ['an object as a command', 'POST /', { set: 1 }, 400, 'not a JSON array'],
    ['an empty command', 'POST /', [], 400, 'empty command'],
    ['null as an argument', 'POST /', ['SET', 'k', null], 400, 'null args'],
    ['an object as an argument', 'POST /', ['SET', 'k', {}], 400, 'objects and arrays'],
    ['a command nested without end', 'POST /', nested(200_000), 400, 'objects and arrays'],
    ['a number nested without end', 'POST /', nested(200_000).replace('[]', '[1]'), 400, 'objects and arrays'],
    ['an unknown command', 'POST /', ['NOSUCH', 'k'], 400, "unknown command 'NOSUCH', with args beginning with: 'k' "],
    ['a command with too few arguments', 'POST /', ['SET', 'k'], 400, 'wrong number of arguments'],
    ['a pipeline that is none', 'POST /pipeline', ['SET', 'k', 'v'], 400, 'failed to parse pipeline'],
    ['an empty pipeline', 'POST /pipeline', [], 400, 'empty pipeline'],
    ['more than the plan allows', 'POST /', ['SET', 'k', 'x'.repeat(10_485_761)], 413, 'max request size exceeded'],
    ['a wrong method', 'PATCH /get/k', undefined, 405, ''],
  ])('%s', async (_what, line, body, status, text) => {
    const response = await rest(line, body)
    const answer = (await response.json()) as { error: string }
    expect(answer).toEqual({ error: expect.stringMatching(text) })
    expect(response.status).toBe(status)
    expect(answer.error).not.toMatch(MACHINE)
    expect(await (await rest('GET /dbsize', undefined)).json()).toEqual({ result: 0 })
  })

  it.each([
    ['a length without end', '*1\r\n$99999999999999999999\r\n'],
    ['a negative length', '*1\r\n$-5\r\nPING\r\n'],
    ['a list without end', '*99999999999\r\n$4\r\nPING\r\n'],
    ['what is no length', '*1\r\n$x\r\nPING\r\n'],
    ['HTTP', 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['much before a password', `*2\r\n$4\r\nECHO\r\n$20000000\r\n${'x'.repeat(100_000)}`],
  ])('%s on the Redis port, and closes the connection', async (_what, sent) => {
    const socket = connectSocket({ host: '127.0.0.1', port: database.port })
    let heard = ''
    socket.setEncoding('utf8').on('data', (part) => (heard += part))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => undefined)
    socket.write(sent)
    await closed
    expect(heard).toMatch(/^-(ERR|NOAUTH) /)
    expect(heard).not.toMatch(MACHINE)
    expect(await (await rest('GET /ping', undefined)).json()).toEqual({ result: 'PONG' })
  })
})

it('the server protects every listener against DNS rebinding', async () => {
  const { apiUrl, queueUrl, restUrl } = service.homeport
  for (const url of [apiUrl, queueUrl, restUrl]) {
    for (const target of ['/', '/v2/redis/databases', '/get/key', '/health']) {
      const answer = await new Promise<string>((resolve, reject) => {
        let heard = ''
        const socket = connectSocket({ host: '127.0.0.1', port: Number(new URL(url).port) })
        socket.setEncoding('utf8').on('data', (part) => (heard += part))
        socket.once('close', () => resolve(heard)).once('error', reject)
        socket.write(`GET ${target} HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n`)
      })
      expect(answer).toMatch(/^HTTP\/1\.1 421 .*nosniff.*rebound\.example/s)
    }
  }
})

it('the server answers bytes that are not HTTP, and continues to serve', async () => {
  for (const url of [service.homeport.apiUrl, service.homeport.queueUrl, service.homeport.restUrl]) {
    const socket = connectSocket({ host: '127.0.0.1', port: Number(new URL(url).port) })
    let heard = ''
    socket.setEncoding('utf8').on('data', (part) => (heard += part))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write('*1\r\n$4\r\nPING\r\n\r\n')
    await closed
    expect(heard).toMatch(/^HTTP\/1\.1 400 /)
    expect(heard).toContain('{"error":')
    expect((await fetch(`${url}/health`)).status).toBe(200)
  }
  expect(await state()).toEqual(before)
})
