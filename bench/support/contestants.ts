import pg from 'pg'
import { startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { postRequest } from './http-load.js'
import { type Peer, startPeer, startRedis } from './peers.js'

/** The names of the contestants. */
export const NAMES = ['homeport', 'bullmq', 'graphile-worker', 'pg-boss'] as const

/** The name of a contestant. */
export type Name = (typeof NAMES)[number]

/** A queue with an HTTP front. */
export interface Contestant {
  readonly port: number
  /** The bytes of a request that publishes one message to a destination; `more` are headers of Homeport. */
  one(target: string, body: string, more?: Readonly<Record<string, string>>): Buffer
  /** The same for many messages at once. */
  many(target: string, bodies: readonly string[], more?: Readonly<Record<string, string>>): Buffer
  /** Starts a process that delivers messages. Homeport delivers by itself. */
  deliver(): Promise<void>
}

/** All contestants, running. */
export interface Contest {
  readonly of: Readonly<Record<Name, Contestant>>
  stop(): Promise<void>
}

const JSON_TYPE = { 'content-type': 'application/json' }

function fronted(port: number, startWorker: () => Promise<Peer<unknown>>, running: Peer<unknown>[]): Contestant {
  return {
    port,
    one: (target, body) => postRequest('/', { ...JSON_TYPE, 'x-target': target }, body),
    many: (target, bodies) => postRequest('/batch', { ...JSON_TYPE, 'x-target': target }, JSON.stringify(bodies)),
    deliver: async () => void running.push(await startWorker()),
  }
}

function homeport(port: number, token: string): Contestant {
  const authorization = `Bearer ${token}`
  return {
    port,
    one: (target, body, more = {}) =>
      postRequest(`/v2/publish/${target}`, { ...JSON_TYPE, authorization, ...more }, body),
    many: (destination, bodies, more = {}) => {
      const items = bodies.map((body) => ({ destination, body, headers: { ...JSON_TYPE, ...more } }))
      return postRequest('/v2/batch', { ...JSON_TYPE, authorization }, JSON.stringify(items))
    },
    deliver: async () => undefined,
  }
}

async function createDatabases(url: string, names: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: `${url}/postgres` })
  await client.connect()
  for (const name of names) await client.query(`CREATE DATABASE ${name}`)
  await client.end()
}

/**
 * Starts all contestants, each durable: Homeport on SQLite with synchronous=FULL, BullMQ on Redis with appendfsync
 * always, the others on PostgreSQL with its defaults. Homeport gives one host half of its requests in flight.
 * @param inFlight requests to the destination at once.
 */
export async function startContest(inFlight: number): Promise<Contest> {
  const redis = await startRedis()
  const postgres = await startPostgresServer('full')
  await createDatabases(postgres.url, ['graphile_bench', 'pgboss_bench'])
  const common = { BENCH_CONCURRENCY: String(inFlight) }
  const ofRedis = { ...common, BENCH_REDIS_PORT: String(redis.port) }
  const ofPostgres = { ...common, POSTGRES_URL: postgres.url }
  const server = { ...ofPostgres, BENCH_ROLE: 'server' }
  const ours = await startPeer<{ port: number; token: string }>('queue-server.ts', {
    BENCH_CONCURRENCY: String(2 * inFlight),
  })
  const bullmq = await startPeer<{ port: number }>('bullmq.mjs', { ...ofRedis, BENCH_ROLE: 'server' })
  const graphile = await startPeer<{ port: number }>('graphile.mjs', server)
  const pgBoss = await startPeer<{ port: number }>('pg-boss.mjs', server)
  const running: Peer<unknown>[] = [ours, bullmq, graphile, pgBoss]
  return {
    of: {
      homeport: homeport(ours.facts.port, ours.facts.token),
      bullmq: fronted(bullmq.facts.port, () => startPeer('bullmq.mjs', ofRedis), running),
      'graphile-worker': fronted(graphile.facts.port, () => startPeer('graphile.mjs', ofPostgres), running),
      'pg-boss': fronted(pgBoss.facts.port, () => startPeer('pg-boss.mjs', ofPostgres), running),
    },
    stop: async () => {
      await Promise.all(running.map((peer) => peer.stop()))
      await redis.stop()
      await postgres.stop()
    },
  }
}
