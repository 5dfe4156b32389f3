/**
 * The cost of each list, filter and search of API and console on a large store: 1,000,000 runs, messages and entries of the
 * audit log. Starts the built server on that store and times each request: its first page, or a deep page.
 *
 *   npm run bench lists
 *   node --import ./scripts/lib/measured.mjs bench/lists.bench.ts [rows = 1000000] [--rounds 5] [--only runs] [--keep folder]
 *
 * `processor` is the processor time of the whole server. `others` is the longest time of another request meanwhile: a
 * publish, which needs the store's writer, and a read of a message, which needs its reader. `--keep` fills the folder once
 * and uses it again.
 */
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cleanup, type RunningHomeport, startHomeport, tempDir } from '../test/support/index.js'
import { median } from './support/figures.js'
import { fillStore } from './support/lists-data.js'
import { type ListRequest, REQUESTS } from './support/lists-requests.js'
import { processUs } from './support/process-time.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    keep: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    store: { type: 'string' },
  },
})
const rows = Number(positionals[0] ?? 1_000_000)
const DAY_S = 86_400

/** Starts a server, gives its store one run, message and entry of the audit log, stops it, and multiplies them. */
async function fill(dataDir: string): Promise<void> {
  const server = await startHomeport({ dataDir })
  const later = { 'upstash-delay': `${DAY_S}s`, 'content-type': 'application/json' }
  const asked = [
    await server.queue('POST', '/v2/trigger/https://work.test/jobs', { order: 1 }, later),
    await server.queue('POST', '/v2/publish/https://work.test/jobs', { order: 1 }, later),
    await server.api('POST', '/v2/redis/database', {
      database_name: 'one',
      platform: 'aws',
      primary_region: 'us-east-1',
    }),
  ]
  for (const { status, body } of asked) if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`)
  await server.kill('SIGTERM')
  fillStore(dataDir, rows)
}

interface Timed {
  readonly ms: number
  readonly cpuMs: number
  readonly found: number
  readonly more: boolean
  readonly publishMs: number
  readonly readMs: number
}

const ask = ({ of }: ListRequest, path: string, server: RunningHomeport) =>
  of === 'queue' ? server.queue('GET', path) : server.api('GET', path)

/** Items of a page: the longest array of the body. */
function itemsOf(body: unknown): readonly unknown[] {
  if (Array.isArray(body)) return body
  const lists = Object.values(body as object).filter((value) => Array.isArray(value))
  return lists.toSorted((one, other) => other.length - one.length)[0] ?? []
}

const cursorOf = (body: unknown): string | undefined => (body as { cursor?: string }).cursor

async function placeOf(request: ListRequest, server: RunningHomeport): Promise<string> {
  let path = request.path
  for (let page = 0; page < (request.pages ?? 0); page++) {
    const { body } = await ask(request, path, server)
    const last = (body as { log_id: string }[]).at?.(-1)?.log_id
    if (last === undefined && cursorOf(body) === undefined) break
    path = `${request.path}&${last === undefined ? `cursor=${cursorOf(body)}` : `before=${last}`}`
  }
  return path
}

/** Repeats a request until `isOver`. @returns the longest time of one request, milliseconds. */
async function longest(work: () => Promise<unknown>, isOver: () => boolean): Promise<number> {
  let most = 0
  while (!isOver()) {
    const began = performance.now()
    await work()
    most = Math.max(most, performance.now() - began)
  }
  return most
}

async function time(request: ListRequest, path: string, server: RunningHomeport): Promise<Timed> {
  const cpu = processUs(server.pid)
  const began = performance.now()
  const { status, body } = await ask(request, path, server)
  const ms = performance.now() - began
  const cpuMs = (processUs(server.pid) - cpu) / 1_000
  if (status !== 200)
    throw new Error(`${request.name}: ${status} ${JSON.stringify(body).slice(0, 300)}\n${server.logs().slice(-2_000)}`)
  let isOver = false
  const later = { 'upstash-delay': `${DAY_S}s` }
  const publish = () => server.queue('POST', '/v2/publish/https://work.test/other', 'x', later)
  const read = () => server.queue('GET', '/v2/messages/msg_none')
  const others = [longest(publish, () => isOver), longest(read, () => isOver)]
  await ask(request, path, server)
  isOver = true
  const [publishMs = 0, readMs = 0] = await Promise.all(others)
  return { ms, cpuMs, found: itemsOf(body).length, more: cursorOf(body) !== undefined, publishMs, readMs }
}

function rowOf(request: ListRequest, rounds: readonly Timed[]) {
  const middle = (of: (one: Timed) => number): string => median(rounds.map(of)).toFixed(1)
  const times = rounds.map(({ ms }) => ms)
  return {
    request: request.name,
    ms: middle(({ ms }) => ms),
    range: `${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)}`,
    'processor, ms': middle(({ cpuMs }) => cpuMs),
    found: rounds[0]?.found,
    more: rounds[0]?.more ? 'yes' : '',
    'others: publish, ms': middle(({ publishMs }) => publishMs),
    'read, ms': middle(({ readMs }) => readMs),
  }
}

try {
  const dataDir = join(tempDir(), 'data')
  const kept = values.keep
  if (kept === undefined) await fill(dataDir)
  else {
    if (!existsSync(kept)) {
      await fill(dataDir)
      cpSync(dataDir, kept, { recursive: true })
    } else cpSync(kept, dataDir, { recursive: true })
  }
  const server = await startHomeport({ dataDir, args: ['--log-level', 'warn'] })
  const results = []
  for (const request of REQUESTS.filter(({ name }) => name.includes(values.only))) {
    const path = await placeOf(request, server)
    const rounds: Timed[] = []
    for (let round = 0; round < Number(values.rounds); round++) rounds.push(await time(request, path, server))
    const row = rowOf(request, rounds)
    if (values.verbose) console.error(Object.values(row).join('\t'))
    results.push(row)
  }
  console.table(results)
} finally {
  await cleanup()
}
