import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { Client, type WorkflowContext } from '@upstash/workflow'
import { serve } from '@upstash/workflow/cloudflare'
import { openSqlite } from '../../src/base/index.js'
import { toRequest } from '../crash/destinations.js'
import { connected, type NewDatabase } from '../soak/database-load.js'
import {
  atCleanup,
  type Credentials,
  freePortRange,
  newPlace,
  type Place,
  type RunningHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'
import { type Ending, filesIn, kindOf } from './files.js'

/** Ids and secrets with which clients read the data. */
export interface Known {
  readonly databases: readonly NewDatabase[]
  readonly users: readonly { readonly database: NewDatabase; readonly name: string; readonly password: string }[]
  readonly backups: readonly { readonly databaseId: string; readonly backupId: string }[]
  readonly messageIds: readonly string[]
  readonly runIds: readonly string[]
  readonly authority: string
  readonly credentials: Credentials
}

/** A data directory with data of every kind, and copies of it. */
export interface Golden {
  readonly place: Place
  readonly known: Known
  /** Where the copies are; `earlier`: the store alone, from before most things were made. */
  readonly copies: Readonly<Record<Ending | 'earlier', string>>
  /** Which copies there are. */
  readonly endings: readonly Ending[]
  /** Requests that reached the destinations after all due messages had been delivered. */
  readonly strangers: string[]
}

const RARELY = '0 0 29 2 *'
const LATER = { 'upstash-delay': '30d' }
const LOCATION = { platform: 'aws', primary_region: 'us-east-1' }

interface Endpoints {
  readonly url: string
  readonly strangers: string[]
  rest(): void
}

/** Destinations: `/ok` succeeds, `/dead` fails for good, and the rest are workflows. */
async function startEndpoints(homeport: RunningHomeport): Promise<Endpoints> {
  const { queueToken, currentSigningKey, nextSigningKey } = homeport.credentials
  const env = {
    QSTASH_URL: homeport.queueUrl,
    QSTASH_TOKEN: queueToken,
    QSTASH_CURRENT_SIGNING_KEY: currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: nextSigningKey,
  }
  const strangers: string[] = []
  let isIdle = false
  const workflows = new Map([
    ['/short', serve(short)],
    ['/waits', serve(waits)],
    ['/sleeps', serve(sleeps)],
    ['/dies', serve(dies)],
  ])
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const path = incoming.url ?? '/'
    if (isIdle) strangers.push(`${path} ${incoming.headers['upstash-message-id']}`)
    const workflow = workflows.get(path)
    const response = workflow ? await workflow.fetch(await toRequest(incoming), env) : reaction(path)
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  }
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing).catch(() => outgoing.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atCleanup(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    strangers,
    rest: () => {
      isIdle = true
    },
  }
}

function reaction(path: string): Response {
  if (path.startsWith('/ok')) return new Response(`the answer of ${path}`)
  return new Response('no', { status: 489, headers: { 'upstash-nonretryable-error': 'true' } })
}

async function short(context: WorkflowContext<unknown>): Promise<string> {
  const one = await context.run('one', () => 'the result of one')
  return await context.run('two', () => `${one}, and of two`)
}

async function waits(context: WorkflowContext<unknown>): Promise<void> {
  await context.run('before', () => 'the result before the wait')
  await context.waitForEvent('wait', 'never', { timeout: '300d' })
}

async function sleeps(context: WorkflowContext<unknown>): Promise<void> {
  await context.run('before', () => 'the result before the sleep')
  await context.sleep('long', '300d')
}

async function dies(context: WorkflowContext<unknown>): Promise<void> {
  await context.run('fails', () => {
    throw new Error('as planned')
  })
}

async function ask<Body>(asked: Promise<{ readonly status: number; readonly body: unknown }>): Promise<Body> {
  const { status, body } = await asked
  if (status >= 300) throw new Error(`answered ${status} ${JSON.stringify(body)}`)
  return body as Body
}

const create = (homeport: RunningHomeport, fields: object): Promise<NewDatabase> =>
  ask(homeport.api('POST', '/v2/redis/database', { ...LOCATION, ...fields }))

/**
 * Writes keys of every type to a database. Each value contains `name`, so that databases cannot be mistaken for each
 * other.
 */
async function fill(database: NewDatabase, name: string): Promise<void> {
  await connected(database, async (client) => {
    await client.mset(
      Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`text:${n}`, `${name} ${n} ${'v'.repeat(40)}`])),
    )
    await client.hset('hash', Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`field ${n}`, `${name} ${n}`])))
    await client.rpush('list', ...Array.from({ length: 50 }, (_, n) => `${name} ${n}`))
    await client.sadd('set', ...Array.from({ length: 50 }, (_, n) => `${name} ${n}`))
    await client.zadd('zset', ...Array.from({ length: 50 }, (_, n) => [n, `${name} ${n}`]).flat())
    for (let n = 0; n < 20; n++) await client.xadd('stream', `${n + 1}-0`, 'field', `${name} ${n}`)
  })
}

async function makeDatabases(homeport: RunningHomeport): Promise<Pick<Known, 'databases' | 'users' | 'backups'>> {
  const shop = await create(homeport, { database_name: 'shop', read_regions: ['eu-west-1'] })
  const till = await create(homeport, { database_name: 'till' })
  const secure = await create(homeport, { database_name: 'secure', tls: true })
  for (const [database, name] of [
    [shop, 'shop'],
    [till, 'till'],
  ] as const)
    await fill(database, name)
  for (const { database_id: id } of [shop, till])
    await ask(homeport.api('POST', `/v2/redis/create-backup/${id}`, { name: 'kept' }))
  // The data of a restored database is in the base of the append-only file, that of the others in the log after it.
  const [kept] = await backupsOf(homeport, till)
  await ask(homeport.api('POST', `/v2/redis/restore-backup/${till.database_id}`, { backup_id: kept?.backup_id }))
  await connected(till, (client) => client.set('after', 'the restore'))
  const password = await connected(shop, async (client) => {
    const token = String(await client.call('ACL', 'GENTOKEN', 'alice'))
    await client.call('ACL', 'SETUSER', 'alice', 'on', `>${token}`, '~*', '+get')
    return token
  })
  const backups = [...(await backupsOf(homeport, shop)), ...(await backupsOf(homeport, till))]
  return {
    databases: [shop, till, secure],
    users: [{ database: shop, name: 'alice', password }],
    backups: backups.map(({ database_id, backup_id }) => ({ databaseId: database_id, backupId: backup_id })),
  }
}

const backupsOf = (homeport: RunningHomeport, { database_id }: NewDatabase) =>
  ask<{ database_id: string; backup_id: string }[]>(homeport.api('GET', `/v2/redis/list-backup/${database_id}`))

const bodyOf = (name: string): object => ({ name, text: `the body of ${name} `.repeat(20) })

async function makeMessages(homeport: RunningHomeport, url: string): Promise<string[]> {
  const post = (path: string, name: string, headers = {}) =>
    ask<{ messageId: string }>(homeport.queue('POST', path, bodyOf(name), headers))
  const sent = [
    post(`/v2/publish/${url}/ok/1`, 'delivered', { 'upstash-callback': `${url}/ok/callback` }),
    post(`/v2/publish/${url}/dead`, 'dead'),
    post(`/v2/publish/${url}/ok/2`, 'pending', { ...LATER, 'upstash-label': 'later' }),
    post(`/v2/publish/${url}/ok/3`, 'limited', {
      ...LATER,
      'upstash-flow-control-key': 'narrow',
      'upstash-flow-control-value': 'parallelism=2',
    }),
  ]
  await ask(homeport.queue('POST', '/v2/queues', { queueName: 'paused', parallelism: 1, paused: true }))
  sent.push(post(`/v2/enqueue/paused/${url}/ok/4`, 'queued one'), post(`/v2/enqueue/paused/${url}/ok/5`, 'queued two'))
  await ask(homeport.queue('POST', `/v2/schedules/${url}/ok/6`, bodyOf('schedule'), { 'upstash-cron': RARELY }))
  const endpoints = [{ name: 'left', url: `${url}/ok/7` }]
  await ask(homeport.queue('POST', '/v2/topics/group/endpoints', { endpoints }))
  return (await Promise.all(sent)).map(({ messageId }) => messageId)
}

async function makeRuns(homeport: RunningHomeport, url: string): Promise<string[]> {
  const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken, retry: false })
  const start = async (path: string) => {
    const run = { url: `${url}${path}`, body: bodyOf(path), retries: 0 }
    return (await client.trigger(run)).workflowRunId
  }
  const runIds = await Promise.all(['/short', '/waits', '/sleeps', '/dies', '/sleeps'].map(start))
  const areSettled = async () => {
    const { body } = await homeport.queue('GET', '/v2/workflows/logs?count=100')
    const text = JSON.stringify((body as { runs: unknown[] }).runs)
    const have = (word: string, times: number) => text.split(word).length - 1 >= times
    return have('"RUN_SUCCESS"', 1) && have('"RUN_FAILED"', 1) && have('"long"', 2) && have('"never"', 1)
  }
  await waitFor(areSettled, { what: 'the runs to end or wait', everyMs: 50 })
  await client.cancel(runIds.at(-1) ?? '')
  return runIds
}

/** Makes a data directory with data of every kind, and a copy for each way in which a server may end. */
export async function makeGolden(endings: readonly Ending[] = ['stopped', 'killed']): Promise<Golden> {
  const folder = mkdtempSync(join(tmpdir(), 'hp-golden-'))
  atCleanup(() => rmSync(folder, { recursive: true, force: true }))
  const copies = {
    stopped: join(folder, 'stopped'),
    killed: join(folder, 'killed'),
    earlier: join(folder, 'earlier.sqlite'),
  }
  const { from, to } = await freePortRange(12)
  const place = await newPlace({ dataDir: join(folder, 'data'), redisPorts: `${from}-${to}` })
  let homeport = await startHomeport(place)
  const endpoints = await startEndpoints(homeport)
  const first = await create(homeport, { database_name: 'first' })
  copyStore(place, copies.earlier)
  const made = await makeDatabases(homeport)
  const messageIds = await makeMessages(homeport, endpoints.url)
  const runIds = await makeRuns(homeport, endpoints.url)
  await delivered(homeport)
  endpoints.rest()
  if (endings.includes('killed')) {
    await waitFor(() => sizesAreNoted(place.dataDir), { what: 'the sizes of the logs to be noted', everyMs: 100 })
    await homeport.kill('SIGKILL')
    await waitFor(() => homeport.processes().length === 0, { what: 'the engines to end' })
    cpSync(place.dataDir, copies.killed, { recursive: true })
    homeport = await startHomeport(place)
  }
  await homeport.kill('SIGTERM')
  cpSync(place.dataDir, copies.stopped, { recursive: true })
  for (const ending of endings)
    writeFileSync(join(copies[ending], 'homeport.config.json'), JSON.stringify({ freeAccountDatabases: 5 }))
  const { credentials } = homeport
  const authority = join(copies.stopped, 'tls', 'ca.crt')
  const databases = [first, ...made.databases]
  const known: Known = { ...made, databases, messageIds, runIds, authority, credentials }
  return { place, known, copies, endings, strangers: endpoints.strangers }
}

/**
 * Whether the recorded sizes are up to date: they are recorded from time to time only (docs/decisions/data-loss.md).
 */
function sizesAreNoted(dataDir: string): boolean {
  const logs = filesIn(dataDir).filter((path) => kindOf(path)?.name === 'append-only log')
  return logs.every((path) => {
    const note = join(dataDir, dirname(path), '..', 'log-sizes.json')
    if (!existsSync(note)) return false
    const { seen } = JSON.parse(readFileSync(note, 'utf8')) as { seen: Record<string, number> }
    return seen[basename(path)] === statSync(join(dataDir, path)).size
  })
}

/** Makes a complete copy of the store of a running server. */
function copyStore({ dataDir }: Place, to: string): void {
  const db = openSqlite(join(dataDir, 'homeport.sqlite'), { readOnly: true })
  db.prepare('VACUUM INTO ?').run(to)
  db.close()
}

/** Waits until all due messages have been delivered, including callbacks. */
async function delivered(homeport: RunningHomeport): Promise<void> {
  const isDone = async () => {
    const { body } = await homeport.queue('GET', '/v2/logs?count=1000')
    const states = (body as { logs: { state: string; url: string }[] }).logs
    return states.some(({ state, url }) => state === 'DELIVERED' && url.endsWith('/ok/callback'))
  }
  await waitFor(isDone, { what: 'the callback to be delivered', everyMs: 50 })
}
