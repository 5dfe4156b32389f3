import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect, type NewDatabase } from '../soak/database-load.js'
import { basicOf, call, credentialsIn, type RunningHomeport } from '../support/index.js'
import type { Golden, Known } from './golden.js'

/** What a client got: a value, an error, or no answer. */
export type Answer =
  | { readonly kind: 'value'; readonly text: string }
  | { readonly kind: 'refusal'; readonly text: string }
  | { readonly kind: 'none'; readonly text: string }

/** The answers to all requests, by the name of the request. */
export type Answers = ReadonlyMap<string, Answer>

/** Timeout of a command or request. */
const PATIENCE_MS = 25_000
/** Fields that differ from one start to the next. */
const VOLATILE =
  /^(?:state|lag|parallelismCount|rateCount|waitListSize|lastUsed|last_used|last_used_at|because|sinceMs|requestId|current)$/

const value = (text: string): Answer => ({ kind: 'value', text })

/** JSON without volatile fields. */
function stable(body: unknown): string {
  return JSON.stringify(body, (name, inner: unknown) =>
    VOLATILE.test(name) && typeof inner !== 'object' ? undefined : inner,
  )
}

/** A 5xx means that the server knows that it cannot answer; a 4xx is a value: there is nothing. */
async function overHttp(asked: Promise<{ status: number; body: unknown }>): Promise<Answer> {
  try {
    const { status, body } = await asked
    const text = stable(body)
    return status >= 500 ? { kind: 'refusal', text: `${status} ${text}` } : value(`${status} ${text}`)
  } catch (error) {
    return { kind: 'none', text: String(error) }
  }
}

const PATHS_OF_API = ['/v2/redis/databases', '/v2/apikeys', '/v2/teams']

const PATHS_OF_QUEUE = [
  ...['/v2/logs?count=1000', '/v2/dlq?count=100', '/v2/schedules', '/v2/queues', '/v2/topics', '/v2/flowControl'],
  ...['/v2/keys', '/v2/workflows/logs?count=100', '/v2/workflows/dlq', '/v2/workflows/bulkActions'],
]

/** Reads everything, as clients do. */
export async function askAll(homeport: RunningHomeport, { known }: Golden): Promise<Answers> {
  const answers = new Map<string, Answer>()
  for (const path of PATHS_OF_API) answers.set(path, await overHttp(homeport.api('GET', path)))
  for (const path of PATHS_OF_QUEUE) answers.set(path, await overHttp(homeport.queue('GET', path)))
  for (const id of known.messageIds)
    answers.set(`message ${id}`, await overHttp(homeport.queue('GET', `/v2/messages/${id}`)))
  for (const id of known.runIds)
    answers.set(`run ${id}`, await overHttp(homeport.queue('GET', `/v2/workflows/runs/${id}`)))
  answers.set('credentials.json', await secretsWork(homeport))
  await askForDatabases(homeport, known, answers)
  for (const { databaseId, backupId } of known.backups)
    answers.set(`backup ${backupId}`, await download(homeport, databaseId, backupId))
  return answers
}

/** Whether the secrets in the data directory work. */
async function secretsWork({ place, apiUrl, queueUrl }: RunningHomeport): Promise<Answer> {
  try {
    const { email, apiKey, queueToken, ...keys } = credentialsIn(place.dataDir)
    const api = await call(`${apiUrl}/v2/apikeys`, { headers: { authorization: basicOf(email, apiKey) } })
    const queue = await call(`${queueUrl}/v2/keys`, { headers: { authorization: `Bearer ${queueToken}` } })
    return value(`${api.status} ${queue.status} ${JSON.stringify(queue.body)} ${JSON.stringify(keys)}`)
  } catch (error) {
    return value(`unusable: ${String(error)}`)
  }
}

async function askForDatabases(homeport: RunningHomeport, known: Known, answers: Map<string, Answer>): Promise<void> {
  const { databases, users } = known
  const all = databases.map(async (database) => {
    const name = database.database_name
    const list = `/v2/redis/list-backup/${database.database_id}`
    answers.set(`record of ${name}`, await overHttp(homeport.api('GET', `/v2/redis/database/${database.database_id}`)))
    answers.set(`backups of ${name}`, await overHttp(homeport.api('GET', list)))
    answers.set(`data of ${name}`, await dataOf(database, known.authority))
    answers.set(`REST of ${name}`, await overHttp(overRest(homeport, database)))
  })
  await Promise.all(all)
  for (const { database, name, password } of users)
    answers.set(`user ${name}`, await dataOf(database, known.authority, { username: name, password }))
}

function overRest({ restUrl }: RunningHomeport, database: NewDatabase): Promise<{ status: number; body: unknown }> {
  const headers = { authorization: `Bearer ${database.rest_token}` }
  return call(restUrl, { method: 'POST', headers, json: ['GET', 'text:7'], signal: AbortSignal.timeout(PATIENCE_MS) })
}

async function download({ apiUrl, credentials }: RunningHomeport, database: string, backup: string): Promise<Answer> {
  const authorization = basicOf(credentials.email, credentials.apiKey)
  try {
    const url = `${apiUrl}/v2/redis/download-backup/${database}/${backup}`
    const response = await fetch(url, { headers: { authorization } })
    const bytes = Buffer.from(await response.arrayBuffer())
    if (response.status !== 200) return { kind: 'refusal', text: `${response.status} ${bytes}` }
    return value(createHash('sha256').update(bytes).digest('hex'))
  } catch (error) {
    // An aborted download is an error, not a file.
    return { kind: 'refusal', text: String(error) }
  }
}

/** All data of a database; for a user, the value that the user may read. */
async function dataOf(
  database: NewDatabase,
  authority: string,
  login?: { username: string; password: string },
): Promise<Answer> {
  const tls = database.tls ? { tls: { ca: readFileSync(authority) }, host: 'localhost' } : {}
  const client = connect(database, { ...login, ...tls, commandTimeout: PATIENCE_MS })
  let problem = ''
  client.on('error', (error: Error) => {
    problem = error.message
  })
  try {
    if (login) return value(String(await client.get('text:7')))
    return value(await everythingIn(client))
  } catch (error) {
    const text = `${error instanceof Error ? error.message : String(error)} ${problem}`
    return { kind: text.includes('timed out') ? 'none' : 'refusal', text }
  } finally {
    client.disconnect()
  }
}

async function everythingIn(client: ReturnType<typeof connect>): Promise<string> {
  const keys = (await client.keys('*')).sort()
  const texts = keys.filter((key) => /^(?:text:|after$)/.test(key))
  const found: unknown[] = [keys, texts.length > 0 ? await client.mget(texts) : []]
  for (const key of keys.filter((name) => !texts.includes(name))) {
    if (key === 'hash') found.push(Object.entries(await client.hgetall(key)).sort())
    else if (key === 'list') found.push(await client.lrange(key, 0, -1))
    else if (key === 'set') found.push((await client.smembers(key)).sort())
    else if (key === 'zset') found.push(await client.zrange(key, 0, -1, 'WITHSCORES'))
    else if (key === 'stream') found.push(await client.xrange(key, '-', '+'))
  }
  return JSON.stringify(found)
}

/** The differences between two sets of answers. */
export interface Differences {
  /** Answered with another value, or with none. */
  readonly changed: readonly string[]
  /** The server says that it cannot answer. */
  readonly refused: readonly string[]
  /** No answer at all. */
  readonly unanswered: readonly string[]
}

/** Compares answers with those of the undamaged directory. */
export function compare(expected: Answers, found: Answers): Differences {
  const changed: string[] = []
  const refused: string[] = []
  const unanswered: string[] = []
  for (const [question, right] of expected) {
    const answer = found.get(question) ?? { kind: 'none', text: 'not asked' }
    if (answer.kind === 'none') unanswered.push(`${question}: ${answer.text.slice(0, 300)}`)
    else if (answer.kind === 'refusal' && right.kind === 'value')
      refused.push(`${question}: ${answer.text.slice(0, 300)}`)
    else if (answer.text !== right.text) changed.push(`${question}: ${firstDifference(right.text, answer.text)}`)
  }
  return { changed, refused, unanswered }
}

function firstDifference(one: string, other: string): string {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  const from = Math.max(0, at - 40)
  return `…${one.slice(from, at + 60)}… became …${other.slice(from, at + 60)}…`
}
