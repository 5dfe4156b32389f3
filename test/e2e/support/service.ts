import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Client as QueueClient, Receiver } from '@upstash/qstash'
import { Redis as RestClient } from '@upstash/redis'
import { Client as WorkflowClient } from '@upstash/workflow'
import { Redis } from 'iovalkey'
import { afterEach, beforeAll, expect, onTestFinished } from 'vitest'
import type { DatabaseRecord } from '../../../src/contract/databases/databases.js'
import { type AmongNodes, startAmongNodes } from '../../support/among-nodes.js'
import { atCleanup, type RunningHomeport, type StartOptions, startHomeport } from '../../support/index.js'
import { type Watch, watchTraffic } from './watch.js'

/** A record with its credentials, the answer of a creation. */
export type NewDatabase = DatabaseRecord &
  Required<Pick<DatabaseRecord, 'password' | 'rest_token' | 'read_only_rest_token'>>

/**
 * The running service of a test file and the clients of its first account. Members may be used inside of tests only.
 */
export interface Service {
  readonly homeport: RunningHomeport
  readonly watch: Watch
  readonly queue: QueueClient
  readonly workflow: WorkflowClient
  /** The argument of `startApp` of the workflow module. */
  readonly app: { url: string; token: string; signingKeys: () => { current: string; next: string } }
  /** The folder of a database at the node that serves it. */
  folderOf(databaseId: string): string
  /** The folders in which databases are. */
  readonly databaseFolders: readonly string[]
  /**
   * Ends the server with a signal and starts it again at its place. In a cluster the other nodes go on, unless all are restarted
   * at once.
   */
  restart(signal: 'SIGTERM' | 'SIGKILL', which?: 'this node' | 'all nodes'): Promise<void>
}

/** The required fields of a creation. */
export const LEAST = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' } as const

/**
 * With `HOMEPORT_TEST_NODES=3` (`npm run test:nodes`), the tests talk to a node of a cluster of three that is not the home of any
 * database, and programs to another one.
 */
export const NODES = Number(process.env.HOMEPORT_TEST_NODES ?? 1)
const START_WITHIN_MS = 120_000

/**
 * Starts one server for a test file. Each answer that a test or a client gets is validated against the served OpenAPI
 * documents; a deviation fails the running test.
 */
export function useService(options: StartOptions = {}): Service {
  let alone: RunningHomeport | undefined
  let cluster: AmongNodes | undefined
  let watch: Watch | undefined
  const nodes = () => (alone ? [alone] : (cluster?.nodes ?? []))
  beforeAll(async () => {
    if (NODES > 1) cluster = await startAmongNodes(NODES, options)
    else alone = await startHomeport(options)
    watch = await watchTraffic([running().apiUrl, running().queueUrl, ofPrograms().queueUrl])
    atCleanup(watch.stop)
  }, NODES * START_WITHIN_MS)
  let seen = 0
  afterEach(() => {
    const deviations = watch?.deviations.slice(seen) ?? []
    seen += deviations.length
    expect(deviations).toEqual([])
  })
  const running = () => started(nodes()[0])
  const ofPrograms = () => started(nodes().at(-1))
  const access = () => ({ baseUrl: running().queueUrl, token: running().credentials.queueToken })
  return {
    get homeport() {
      return running()
    },
    get watch() {
      return started(watch)
    },
    get queue() {
      return new QueueClient(access())
    },
    get workflow() {
      return new WorkflowClient(access())
    },
    get app() {
      const { currentSigningKey: current, nextSigningKey: next } = running().credentials
      return {
        url: ofPrograms().queueUrl,
        token: running().credentials.queueToken,
        signingKeys: () => ({ current, next }),
      }
    },
    get databaseFolders() {
      return nodes().map(({ place }) => join(place.dataDir, 'databases'))
    },
    folderOf(databaseId) {
      const folders = this.databaseFolders.map((folder) => join(folder, databaseId))
      return folders.find((folder) => existsSync(folder)) ?? (folders[0] as string)
    },
    async restart(signal, which = 'this node') {
      if (cluster) return await cluster.restart(which === 'this node' ? [0] : [...cluster.nodes.keys()], signal)
      const { place, kill } = running()
      await kill(signal)
      alone = await startHomeport({ ...options, ...place })
    },
  }
}

function started<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('the service has not been started yet')
  return part
}

/** Creates a database through the API. */
export async function createDatabase({ homeport }: Service, some: object = {}): Promise<NewDatabase> {
  const { status, body } = await homeport.api('POST', '/v2/redis/database', { ...LEAST, ...some })
  expect([status, body]).toEqual([200, expect.objectContaining({ state: 'active' })])
  return body as NewDatabase
}

/** A client of the REST data plane. */
export function restClient(database: NewDatabase, token = database.rest_token): RestClient {
  return new RestClient({ url: database.rest_url, token, enableTelemetry: false })
}

/** A connection to the Redis port that does not reconnect; closed after the test. */
export function connect(database: NewDatabase, login: { username?: string; password?: string } = {}): Redis {
  const { port, password } = database
  const client = new Redis({ host: '127.0.0.1', port, password, ...login, retryStrategy: () => null })
  client.on('error', () => undefined)
  onTestFinished(() => client.disconnect())
  return client
}

/** The receiver with which an endpoint verifies signatures. */
export function receiverOf({ homeport }: Service): Receiver {
  const { currentSigningKey, nextSigningKey } = homeport.credentials
  return new Receiver({ currentSigningKey, nextSigningKey })
}
