import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { seeded } from '../../src/base/testing/random.js'
import type { Endpoint } from '../../src/contract/endpoint.js'
import { declaredEndpoints } from '../contract/declared.js'
import { basicOf, tempDir } from '../support/index.js'
import { sampleNumber } from '../support/sample.js'
import { useService } from './support/service.js'

/**
 * Sends the most expensive requests to every declared operation. No request may occupy the server's event loop for
 * long, because all other requests wait meanwhile. The test measures processor time, with a bound for a busy machine;
 * on an idle one the longest stretch is about 50 ms, for a text of 16 MiB.
 *
 * All operations of a service share the parsers, so requests for these go to one operation of each method only. Of the other
 * pairs of a request and an operation, a run sends a sixteenth, chosen by the number of its sample
 * (`test/support/sample.ts`), and each kind of request at least once. `WORST_REQUESTS=all` sends everything to every
 * operation, with bodies of 16 MiB and each parameter separately, and prints figures; `WORST_ONLY=<operation>` tests only
 * that operation.
 */
const BOUND_MS = 400
const IS_FULL = process.env.WORST_REQUESTS === 'all'
const ONLY = process.env.WORST_ONLY
const SAMPLE = sampleNumber()
const SHARE = 1 / 16

const MIB = 2 ** 20
const endpoints = await declaredEndpoints()
const meter = join(tempDir(), 'loop-meter')
const agent = new Agent({ keepAlive: true, maxSockets: 8 })
const hook = fileURLToPath(new URL('./support/loop-meter.mjs', import.meta.url))
// In a cluster, the node that starts first listens on the socket: the one that gets the requests.
const service = useService({ env: { LOOP_METER: meter, NODE_OPTIONS: `--import=${hook}` } })

interface Sent {
  readonly of: Endpoint['service']
  readonly method: string
  readonly target: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: Buffer | undefined
}

function authorization(of: Endpoint['service']): string {
  const { email, apiKey, queueToken } = service.homeport.credentials
  return of === 'queue' ? `Bearer ${queueToken}` : basicOf(email, apiKey)
}

/** @returns the status, or 0 where the server has closed the connection instead. */
function send({ of, method, target, headers = {}, body }: Sent): Promise<number> {
  return new Promise((resolve) => {
    // Node does not set the length of a DELETE body by itself.
    const length = body === undefined ? {} : { 'content-length': body.length }
    const url = new URL(of === 'queue' ? service.homeport.queueUrl : service.homeport.apiUrl)
    const sending = request(
      {
        host: url.hostname,
        port: url.port,
        path: target,
        method,
        agent,
        headers: { authorization: authorization(of), ...length, ...headers },
      },
      (response: IncomingMessage) => {
        response.resume()
        response.once('close', () => resolve(response.statusCode ?? 0))
      },
    )
    sending.once('error', () => resolve(0))
    sending.end(body)
  })
}

/** The longest time that the server's event loop was busy since the last call, milliseconds. */
function longestStretch(): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(meter)
    socket.setEncoding('latin1').on('data', (part: string) => (text += part))
    socket.once('end', () => resolve(Number(text)))
    socket.once('error', reject)
  })
}

const repeated = (text: string, bytes: number, [before, after]: readonly [string, string]): Buffer =>
  Buffer.from(before + text.repeat(Math.floor((bytes - before.length - after.length) / text.length)) + after)
const numbered = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(',')

/** Bodies, made only when they are sent, because most are long. */
type Bodies = Readonly<Record<string, () => Buffer>>

/** Bodies of about this many bytes whose many values a schema has to look at. */
const bodiesForSchemas = (bytes: number): Bodies => ({
  'empty objects': () => repeated('{},', bytes, ['[', '{}]']),
  names: () => Buffer.from(`{${numbered(Math.min(19_000, bytes / 20), (index) => `"name-${index}":1`)}}`),
})

/** Bodies of about this many bytes that are expensive for a JSON parser, but have few values for a schema. */
const bodiesForParsers = (bytes: number): Bodies => ({
  'one text': () => repeated('é', bytes / 2, ['"', '"']),
  escapes: () => repeated('\\"', bytes, ['"', '"']),
  'the same name': () => repeated('"a":1,', Math.min(bytes, 100_000), ['{', '"a":1}']),
  levels: () => repeated('[', bytes, ['', '']),
  quotes: () => repeated('"', bytes, ['', '']),
  number: () => repeated('1', bytes, ['', '']),
})

/** Bodies that an operation accepts, or nearly accepts, by its declaration. */
function ownBodies({ body, id }: Endpoint, bytes: number): Bodies {
  if (body.kind !== 'json') return {}
  const { properties = {} } = body.schema as { properties?: Record<string, object> }
  const texts = (name: string) => () =>
    Buffer.from(`{"${name}":[${numbered(Math.min(100_000, bytes / 24), (index) => `"wfr_someid${index}"`)}]}`)
  const lists = Object.keys(properties).flatMap((name): [string, () => Buffer][] => [
    [`${name}: texts`, texts(name)],
    [`${name}: commas`, () => repeated('a,', bytes, [`{"${name}":"`, 'a"}'])],
  ])
  return { ...Object.fromEntries(lists), ...(id === 'publishBatch' ? BATCHES : {}) }
}

const item = (destination: string, more: object = {}) => ({ destination, headers: { 'upstash-delay': '1d' }, ...more })
const names = (count: number, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`Upstash-Forward-X-${index}`, value]))

const json = (value: unknown) => Buffer.from(JSON.stringify(value))
const many = (count: number, make: (index: number) => object) => () =>
  json(Array.from({ length: count }, (_, i) => make(i)))
const one = (more: object) => () => json([item('https://example.com/', more)])

const BATCHES: Bodies = {
  'items that say nothing': many(100_000, () => ({})),
  'most messages': many(10_000, (index) => item(`https://example.com/${index}`, { body: 'x'.repeat(100) })),
  'messages with many headers': many(10_000, (index) => ({
    destination: `https://example.com/${index}`,
    headers: { ...names(20, 'x'), 'upstash-delay': '1d' },
  })),
  'most headers': one({ headers: { ...names(499, 'x'), 'upstash-delay': '1d' } }),
  'far too many headers': one({ headers: names(19_000, 'x') }),
  'one long body': one({ body: 'é'.repeat(7.5 * MIB) }),
  'steps of runs': many(5_000, (index) => ({
    destination: `https://example.com/${index}`,
    headers: {
      'upstash-workflow-init': 'true',
      'upstash-workflow-runid': `wfr_${index}`,
      'upstash-workflow-url': 'https://example.com/',
      'upstash-feature-set': 'InitialBody,WF_NoDelete',
      'upstash-delay': '1d',
    },
    body: 'x',
  })),
  'wrong destinations': many(10_000, () => item('ftp://example.com/')),
  'unknown groups': many(3_000, (index) => item(`group-${index}`)),
}

const targetOf = ({ path }: Endpoint): string =>
  path.replace('{+destination}', 'https://example.com/').replaceAll(/\{\+?(\w+)\}/g, 'x')
/** Operations that get larger bodies than the others, because long requests make sense for them. */
const LARGER = new Set(['publishBatch', 'cancelWorkflowRuns'])

/** How long the bodies for an operation are. Cost that grows faster than the length shows long before the 16 MiB limit. */
function bodyBytes({ id, service }: Endpoint): number {
  if (IS_FULL) return service === 'queue' ? 16 * MIB : MIB
  return LARGER.has(id) ? 4 * MIB : MIB / 4
}
/** Operations that would invalidate the keys that the other requests need. */
const LEFT_OUT = new Set(['rotateSigningKeys'])
const swept = endpoints.filter(({ id }) => (ONLY === undefined ? !LEFT_OUT.has(id) : id === ONLY))
/** The operations that get the requests for the parsers: the first of each service, method and kind of body. */
const samples = new Map(
  swept.toReversed().map((endpoint) => [`${endpoint.service} ${endpoint.method} ${endpoint.body.kind}`, endpoint]),
)
const isSample = (endpoint: Endpoint): boolean => IS_FULL || [...samples.values()].includes(endpoint)

/** A request to an operation, made only when it is sent. */
interface Planned {
  readonly endpoint: Endpoint
  readonly what: string
  readonly make: () => Omit<Sent, 'of' | 'method'>
}

/** The kind of a request, without its operation and parameter. */
const kindOf = ({ endpoint, what }: Planned): string => `${endpoint.service} ${what.slice(what.indexOf(': ') + 1)}`

/** A share of the requests, with at least one of each kind. */
function sampled(all: readonly Planned[]): readonly Planned[] {
  if (IS_FULL || ONLY !== undefined || SAMPLE === undefined) return all
  const random = seeded(SAMPLE)
  const needed = [...new Set(all.map(kindOf))].map((kind) => random.pick(all.filter((one) => kindOf(one) === kind)))
  return all.filter((planned) => random.chance(SHARE) || needed.includes(planned))
}

interface Figure {
  readonly operation: string
  readonly request: string
  readonly status: number
  readonly ms: number
  readonly wait: number
}

async function sweep(requests: readonly Planned[]): Promise<readonly Figure[]> {
  const figures: Figure[] = []
  await longestStretch()
  for (const { endpoint, what, make } of requests) {
    const { id, service: of, method } = endpoint
    const request = { of, method, ...make() }
    const begin = performance.now()
    const status = await send(request)
    const wait = await longestStretch()
    figures.push({ operation: id, request: what, status, ms: performance.now() - begin, wait })
  }
  const worst = figures.toSorted((one, other) => other.wait - one.wait)
  if (IS_FULL) {
    const shown = worst
      .slice(0, 25)
      .map(({ wait, ms, ...figure }) => ({ ...figure, wait: Math.round(wait), ms: Math.round(ms) }))
    console.table(shown)
  }
  return worst
}

it('the worst body of any operation does not block the event loop', async () => {
  const requests = swept
    .filter(({ method }) => method !== 'GET' && method !== 'HEAD')
    .flatMap((endpoint) => {
      const bytes = bodyBytes(endpoint) - 1_000
      const bodies: Bodies =
        endpoint.body.kind === 'json'
          ? {
              ...bodiesForSchemas(bytes),
              ...(isSample(endpoint) && bodiesForParsers(bytes)),
              ...ownBodies(endpoint, bytes),
            }
          : { bytes: () => Buffer.alloc(bytes, 'a') }
      const target = targetOf(endpoint)
      const headers = { 'upstash-delay': '1d' }
      return Object.entries(bodies).map(([what, body]): Planned => {
        return { endpoint, what, make: () => ({ target, headers, body: body() }) }
      })
    })
  const [worst] = await sweep(sampled(requests))
  expect(worst?.wait, JSON.stringify(worst)).toBeLessThan(BOUND_MS)
})

/** Queries of some 60 KB for an operation: of each of its parameters, and of unknown names. */
function queries({ query }: Endpoint): Record<string, string> {
  const names = Object.keys((query as { properties?: object } | undefined)?.properties ?? {})
  const share = (name: string) => (IS_FULL ? 1 : names.length) * (name.length + 3)
  const own = names.map((name): [string, string] => [name, `${name}=a&`.repeat(60_000 / share(name))])
  const commas = names.map((name): [string, string] => [
    `${name}: commas`,
    `${name}=${'a,'.repeat(30_000 / (IS_FULL ? 1 : names.length))}a`,
  ])
  const together = (list: [string, string][]) => list.map(([, text]) => text).join('&')
  const declared = IS_FULL
    ? Object.fromEntries([...own, ...commas])
    : { 'every parameter': together(own), 'every parameter with commas': together(commas) }
  return { ...declared, names: 'a&'.repeat(30_000) }
}

const SETTINGS: Readonly<Record<string, Record<string, string>>> = {
  'many to forward': Object.fromEntries(Array.from({ length: 1_500 }, (_, index) => [`Upstash-Forward-${index}`, 'x'])),
  'long label': { 'Upstash-Label': 'a,'.repeat(30_000) },
  'long delay': { 'Upstash-Retry-Delay': 'pow(9,'.repeat(10_000) },
  'long flow': { 'Upstash-Flow-Control-Key': 'a', 'Upstash-Flow-Control-Value': 'rate=1,'.repeat(8_000) },
  'long cron': { 'Upstash-Cron': `${'*/1,'.repeat(15_000)}* * * * *` },
  never: { 'Upstash-Cron': '0 0 31 2,4,6,9,11 *' },
}
/** Input that only the parsers see, no operation. */
const AMPERSANDS = '&'.repeat(60_000)
const HEADERS: typeof SETTINGS = {
  cookies: { cookie: 'a=b; '.repeat(12_000) },
  token: { authorization: `Bearer ${'a'.repeat(60_000)}` },
  forwarded: { 'X-Forwarded-For': '1.1.1.1,'.repeat(7_000) },
}

it('the worst query or headers of any operation do not block the event loop', async () => {
  const requests = swept.flatMap((endpoint) => {
    const target = targetOf(endpoint)
    const mark = target.includes('?') ? '&' : '?'
    const sample = isSample(endpoint)
    const own = Object.entries({ ...queries(endpoint), ...(sample && { ampersands: AMPERSANDS }) }).map(
      ([what, query]): Planned => {
        return { endpoint, what: `query of ${what}`, make: () => ({ target: target + mark + query }) }
      },
    )
    const settings = endpoint.service === 'queue' && endpoint.access === 'write' ? SETTINGS : {}
    const heads = Object.entries({ ...(sample && HEADERS), ...settings }).map(
      ([what, headers]): Planned => ({ endpoint, what, make: () => ({ target, headers }) }),
    )
    return [...own, ...heads]
  })
  const [worst] = await sweep(sampled(requests))
  expect(worst?.wait, JSON.stringify(worst)).toBeLessThan(BOUND_MS)
})

it('large answers that are asked for at once do not block the event loop', async () => {
  const headers = { 'upstash-cron': '0 0 1 1 *', 'upstash-schedule-id': 'large' }
  const target = '/v2/schedules/https://example.com/'
  const body = Buffer.alloc(15 * MIB, 'a')
  expect(await send({ of: 'queue', method: 'POST', target, headers, body })).toBe(200)
  const waits: number[] = []
  for (let tries = 0; tries < 2; tries++) {
    await longestStretch()
    const reads = Array.from({ length: 8 }, () => send({ of: 'queue', method: 'GET', target: '/v2/schedules/large' }))
    expect(new Set(await Promise.all(reads))).toEqual(new Set([200]))
    waits.push(await longestStretch())
  }
  expect(Math.min(...waits)).toBeLessThan(BOUND_MS)
})
