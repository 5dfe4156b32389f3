import { afterAll } from 'vitest'
import { type Clock, systemClock } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import { type Authenticator, HttpServer } from '../../http/index.js'
import type { DropSelector } from '../../queue/index.js'
import {
  HIGH_LIMITS,
  type QueueUnderTest,
  type QueueUnderTestOptions,
  startQueue,
} from '../../queue/testing/harness.js'
import type { Store } from '../../store/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { silentLogger } from '../../telemetry/index.js'
import { createWorkflow } from '../../workflow/index.js'
import { type Bulk, createBulk } from '../index.js'
import type { CancelAnswer } from '../routes/answers.js'

/** A response of the server under test. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** The bulk module behind a real listener, with a queue that records its calls. */
export interface BulkUnderTest {
  readonly bulk: Bulk
  /** Group keys that the queue was asked to drop, in order. */
  readonly dropped: number[]
  /** Revoked tokens. */
  readonly revoked: Set<string>
  readonly url: string
  /** Sends a request with a token; every token is an account of that name. */
  ask(account: string, method: string, path: string, body?: unknown): Promise<Answer>
  /** Sends `DELETE /v2/workflows/runs` with this body; expects 200. */
  cancel(account: string, body?: unknown, query?: string): Promise<CancelAnswer>
  stop(): Promise<void>
}

const authenticatorWithout = (revoked: ReadonlySet<string>): Authenticator => ({
  basic: () => undefined,
  bearer: (token, ip) =>
    token === undefined || revoked.has(token)
      ? undefined
      : {
          accountId: token,
          email: `${token}@example.test`,
          accountType: 'paid',
          source: 'QUEUE_TOKEN',
          access: 'write',
          ip,
        },
})

/** A queue that records the group keys to drop. */
const recordingQueue = (dropped: number[], onDrop: NodeOptions['onDrop']) => ({
  dropEverywhere: async (which: DropSelector) => {
    dropped.push(...('groupKeys' in which ? which.groupKeys : []))
    await onDrop?.()
  },
  offer: () => undefined,
  refuseForbidden: () => undefined,
})

/** Options of one node of a cluster. */
interface NodeOptions {
  readonly cluster?: Cluster
  /** Called before each operation of this node on the store. */
  readonly gate?: (operation: string, args: unknown) => Promise<void> | void
  /** Called for each drop. When it resolves, every node has dropped the messages. */
  readonly onDrop?: () => Promise<void>
}

/** Starts the module over a store; it stops after the suite at the latest. */
export async function startBulk(
  store: Store,
  clock: Clock = systemClock,
  { cluster, gate, onDrop }: NodeOptions = {},
): Promise<BulkUnderTest> {
  const dropped: number[] = []
  const revoked = new Set<string>()
  const queue = recordingQueue(dropped, onDrop)
  const own = gate ? gatedStore(store, gate) : store
  const deps = { store: own, queue, clock, logger: silentLogger }
  const bulk = createBulk({ ...deps, ...HIGH_LIMITS, ...(cluster && { cluster }) })
  const server = new HttpServer({
    service: 'queue',
    host: '127.0.0.1',
    port: 0,
    bodyLimitBytes: HIGH_LIMITS.queueBodyLimitBytes,
    authenticator: authenticatorWithout(revoked),
    version: '0',
    publicUrl: 'http://localhost',
    onInternalError: (error) => console.error(error),
    routes: bulk.routes(),
  })
  await bulk.start()
  await server.start()
  const url = `http://127.0.0.1:${server.port}`
  const ask: BulkUnderTest['ask'] = async (account, method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${account}` },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }
  const stop = async () => {
    await bulk.stop()
    await server.stop()
  }
  afterAll(stop)
  return {
    bulk,
    dropped,
    revoked,
    url,
    ask,
    stop,
    cancel: async (account, body, query = '') => {
      const answer = await ask(account, 'DELETE', `/v2/workflows/runs${query}`, body)
      if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
      return answer.body as CancelAnswer
    },
  }
}

/** A store whose operations pass a gate, which may delay them or make them fail. */
export function gatedStore(store: Store, gate: (operation: string, args: unknown) => Promise<void> | void): Store {
  return wrappedStore(store, async (operation, args) => {
    await gate(operation.name, args)
    return store.run(operation, args)
  })
}

/** The queue, workflows and bulk actions, wired as in the server. */
export interface BulkServer extends QueueUnderTest {
  readonly bulk: Bulk
  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
}

/** Starts the three modules over a store, behind one listener. */
export async function startBulkServer(
  store: Store,
  options: Pick<QueueUnderTestOptions, 'deliveryTargets'> = {},
): Promise<BulkServer> {
  let bulk: Bulk | undefined
  const service = await startQueue({
    ...options,
    store,
    extend: (queue) => {
      const shared = { store, queue, clock: systemClock, logger: silentLogger, ...HIGH_LIMITS }
      const workflow = createWorkflow({ ...shared, accountOfUser: () => undefined, publicUrl: 'http://127.0.0.1' })
      bulk = createBulk(shared)
      workflow.guard(bulk.gate)
      queue.delegateLargeCancels(bulk.cancelMessages)
      return [...workflow.routes(), ...bulk.routes()]
    },
  })
  if (!bulk) throw new Error('the queue did not ask for further modules')
  const started = bulk
  await started.start()
  return {
    ...service,
    bulk: started,
    ask: async (method, path, body, headers = {}) => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const response = await fetch(service.url + path, { method, headers: { ...service.auth, ...headers }, ...sent })
      const text = await response.text()
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
    },
    stop: async () => {
      await started.stop()
      await service.stop()
    },
  }
}
