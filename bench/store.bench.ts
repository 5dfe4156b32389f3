/**
 * Durable single-row writes through the store, compared with the floor of each database: the same statement on a bare
 * driver, one commit each. Both databases wait for the disk at every commit.
 *
 *   npm run bench store
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import * as accounts from '../src/accounts/transactions/accounts.js'
import { openStore } from '../src/store/open.js'
import { startPostgresServer } from '../src/store/testing/postgres-server.js'
import type { Store } from '../src/store/types.js'
import { median } from './support/figures.js'

const ROUND_MS = 1_500
const WARM_UP_MS = 700
const ROUNDS = 3
const CONCURRENCIES = [1, 50, 500]

interface Figures {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

let made = 0

/** A row of the audit log: a serial key, a unique text and an index, as most tables of the store have. */
function entry(): Parameters<typeof accounts.recordAudit>[0] {
  const log_id = `log_${String(made++).padStart(12, '0')}`
  const who = { account_id: 'acc_1', actor: 'owner@example.com', source: 'API_KEY - default', ip: '127.0.0.1' }
  return {
    ...who,
    log_id,
    action: 'Create Database',
    entity: 'db_1',
    details: '{"plan":"payg"}',
    at: 1_700_000_000_000,
  }
}

async function round(write: () => Promise<unknown>, concurrency: number, forMs: number): Promise<Figures> {
  const latencies: number[] = []
  const start = performance.now()
  const worker = async (): Promise<void> => {
    for (let now = performance.now(); now - start < forMs; ) {
      await write()
      const end = performance.now()
      latencies.push(end - now)
      now = end
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  const seconds = (performance.now() - start) / 1_000
  latencies.sort((a, b) => a - b)
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  return { perSecond: latencies.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99) }
}

async function measure(name: string, write: () => Promise<unknown>, concurrencies = CONCURRENCIES): Promise<void> {
  for (const concurrency of concurrencies) {
    await round(write, concurrency, WARM_UP_MS)
    const rounds: Figures[] = []
    for (let i = 0; i < ROUNDS; i++) rounds.push(await round(write, concurrency, ROUND_MS))
    const of = (key: keyof Figures): number => median(rounds.map((figures) => figures[key]))
    console.log(
      `${name.padEnd(28)} ${String(concurrency).padStart(4)} at once  ${of('perSecond').toFixed(0).padStart(7)}/s` +
        `  p50 ${of('p50Ms').toFixed(2).padStart(7)} ms  p99 ${of('p99Ms').toFixed(2).padStart(7)} ms`,
    )
  }
}

const columns = Object.keys(entry())
const insertInto = (placeholder: (index: number) => string): string =>
  `INSERT INTO audit_log (${columns.join(', ')}) VALUES (${columns.map((_, index) => placeholder(index)).join(', ')})`

const opened = (location: string, dataDir: string): Promise<Store> =>
  openStore({
    location,
    dataDir,
    onFailure: (error) => {
      throw error
    },
  })

async function sqlite(dataDir: string): Promise<void> {
  const store = await opened('sqlite', dataDir)
  await measure('store on SQLite', () => store.run(accounts.audit, entry()))
  await store.close()
  const bare = new Database(join(dataDir, 'homeport.sqlite'))
  bare.pragma('synchronous = FULL')
  const statement = bare.prepare(insertInto(() => '?'))
  await measure('bare better-sqlite3', async () => statement.run(...Object.values(entry())), [1])
  bare.close()
}

async function postgres(url: string): Promise<void> {
  const store = await opened(url, '')
  await measure('store on PostgreSQL', () => store.run(accounts.audit, entry()))
  await store.close()
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  pool.on('error', () => undefined) // the server ends before the last socket is closed
  const statement = { name: 'insert', text: insertInto((index) => `$${index + 1}`) }
  await measure('bare pg, pool of 10', () => pool.query(statement, Object.values(entry())))
  await pool.end()
}

const only = process.env.STORE
const dataDir = mkdtempSync(join(tmpdir(), 'hp-bench-'))
try {
  if (only !== 'postgres') await sqlite(dataDir)
  if (only !== 'sqlite') {
    const server = await startPostgresServer('full')
    await postgres(`${server.url}/postgres`).finally(() => server.stop())
  }
} finally {
  rmSync(dataDir, { recursive: true, force: true })
}
