import { startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { createDatabase } from './databases.js'
import { postRequest } from './http-load.js'
import { type Peer, startPeer, startRedis } from './peers.js'
import { benchStore } from './store-choice.js'

/** The names of the contestants. */
type Name = 'homeport' | 'bullmq' | 'graphile-worker' | 'pg-boss' | "river's model"

/** A queue with an HTTP front. */
export interface Contestant {
  readonly port: number
  /** The bytes of a request that publishes one message to a destination; `more` are headers of Homeport. */
  one(target: string, body: string, more?: Readonly<Record<string, string>>): Buffer
  /** The same for many messages at once. */
  many(target: string, bodies: readonly string[], more?: Readonly<Record<string, string>>): Buffer
  /** Starts a process that delivers messages; the result stops it. Homeport delivers by itself. */
  deliver(): Promise<() => Promise<void>>
}

/** All contestants, running. */
export interface Contest {
  readonly of: Readonly<Record<Name, Contestant>>
  /**
   * The floor: does the same with the least work. On SQLite it publishes and delivers (`delivery-floor.ts`); on PostgreSQL
   * it only stores batches in Homeport's table (`publish-floor.mjs`).
   */
  readonly floor: Contestant
  stop(): Promise<void>
}

const JSON_TYPE = { 'content-type': 'application/json' }

function fronted(port: number, startWorker: () => Promise<Peer<unknown>>): Contestant {
  return {
    port,
    one: (target, body) => postRequest('/', { ...JSON_TYPE, 'x-target': target }, body),
    many: (target, bodies) => postRequest('/batch', { ...JSON_TYPE, 'x-target': target }, JSON.stringify(bodies)),
    deliver: async () => {
      const worker = await startWorker()
      return () => worker.stop()
    },
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
    deliver: async () => async () => undefined,
  }
}

/**
 * Starts all contestants, each durable: Homeport on SQLite with synchronous=FULL, or on PostgreSQL (`benchStore`);
 * BullMQ on Redis with appendfsync always; the others on PostgreSQL. Everything on PostgreSQL uses one server with its
 * default settings, each in a database of its own. Homeport gives one host half of its requests in flight.
 * @param inFlight requests to the destination at once.
 */
export async function startContest(inFlight: number): Promise<Contest> {
  const redis = await startRedis()
  const postgres = await startPostgresServer('full')
  for (const name of ['graphile_bench', 'pgboss_bench', 'river_bench', 'homeport_bench'])
    await createDatabase(postgres.url, name)
  const common = { BENCH_CONCURRENCY: String(inFlight) }
  const ofRedis = { ...common, BENCH_REDIS_PORT: String(redis.port) }
  const ofPostgres = { ...common, POSTGRES_URL: postgres.url }
  const server = { ...ofPostgres, BENCH_ROLE: 'server' }
  const store = { BENCH_STORE: benchStore === 'postgres' ? `${postgres.url}/homeport_bench` : 'sqlite' }
  const ours = await startPeer<{ port: number; token: string }>('queue-server.ts', {
    BENCH_CONCURRENCY: String(2 * inFlight),
    ...store,
  })
  // The floor starts after Homeport, which creates the table.
  const floor =
    benchStore === 'postgres'
      ? await startPeer<{ port: number }>('publish-floor.mjs', store)
      : await startPeer<{ port: number }>('delivery-floor.ts', common)
  const bullmq = await startPeer<{ port: number }>('bullmq.mjs', { ...ofRedis, BENCH_ROLE: 'server' })
  const graphile = await startPeer<{ port: number }>('graphile.mjs', server)
  const pgBoss = await startPeer<{ port: number }>('pg-boss.mjs', server)
  const river = await startPeer<{ port: number }>('river-model.mjs', server)
  const running: Peer<unknown>[] = [ours, bullmq, graphile, pgBoss, river, floor]
  return {
    of: {
      homeport: homeport(ours.facts.port, ours.facts.token),
      bullmq: fronted(bullmq.facts.port, () => startPeer('bullmq.mjs', ofRedis)),
      'graphile-worker': fronted(graphile.facts.port, () => startPeer('graphile.mjs', ofPostgres)),
      'pg-boss': fronted(pgBoss.facts.port, () => startPeer('pg-boss.mjs', ofPostgres)),
      "river's model": fronted(river.facts.port, () => startPeer('river-model.mjs', ofPostgres)),
    },
    floor: {
      ...fronted(floor.facts.port, () => Promise.reject(new Error('the floor is not started again'))),
      deliver: async () => {
        floor.child.send('deliver')
        return async () => void floor.child.send('pause')
      },
    },
    stop: async () => {
      await Promise.all(running.map((peer) => peer.stop()))
      await redis.stop()
      await postgres.stop()
    },
  }
}
