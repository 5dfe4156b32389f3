import { Client } from '@upstash/qstash'
import { afterEach, beforeAll, beforeEach } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import type { Clock } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import type { Tracer } from '../../telemetry/index.js'
import { type QueueUnderTest, type QueueUnderTestOptions, startQueue } from './harness.js'
import { type Sink, startSink } from './sink.js'

/** Fixtures of a queue test. Every test has its own, except the store. */
export interface QueueScene {
  readonly store: Store
  readonly sink: Sink
  readonly service: QueueUnderTest
  /** The official SDK client. */
  readonly client: Client
  /** Calls an operation without the SDK. A reply without body is `undefined`. */
  ask(method: string, target: string, body?: unknown): Promise<{ status: number; answer: unknown }>
  /** Resolves when the sink has received this many requests. */
  arrived(count: number): Promise<unknown>
  /** Stops the service and starts another one for the same account. */
  restart(meanwhile?: () => void): Promise<void>
}

/** Options of the scenes of a file. */
export interface SceneOptions {
  /** Makes the clock of the next test. Default: the system clock. */
  readonly clock?: () => Clock
  /** Settings of the queue. */
  readonly settings?: Pick<QueueUnderTestOptions, 'dailyMessages' | 'accountSchedules' | 'heldAccounts'>
  /** Makes the tracer of the next test's queue. Default: traces are off. */
  readonly tracer?: () => Tracer
  /** Cleans up after each test, so that nothing keeps running during the next one. */
  readonly tidy?: (scene: QueueScene) => Promise<unknown>
}

const nothingYet = (): never => {
  throw new Error('the scene is set before each test')
}

/**
 * Sets up a scene before each test of the current `describe`: a queue with an account of its own, a client, and a sink.
 */
export function setQueueScenes(openStore: () => Promise<Store>, options: SceneOptions = {}): QueueScene {
  let accounts = 0
  let clock: Clock | undefined
  let tracer: Tracer | undefined
  const { settings } = options
  const start = async (): Promise<void> => {
    const accountId = `acc_${accounts}`
    const service = await startQueue({ store: scene.store, accountId, tracer, ...(clock && { clock }), ...settings })
    const client = new Client({ baseUrl: service.url, token: service.token, retry: false })
    Object.assign(parts, { service, client })
  }
  const parts: Partial<Pick<QueueScene, 'store' | 'sink' | 'service' | 'client'>> = {}
  const scene: QueueScene = {
    get store() {
      return parts.store ?? nothingYet()
    },
    get sink() {
      return parts.sink ?? nothingYet()
    },
    get service() {
      return parts.service ?? nothingYet()
    },
    get client() {
      return parts.client ?? nothingYet()
    },
    ask: (method, target, body) => ask(scene.service, method, target, body),
    arrived: (count) => waitFor(() => scene.sink.received.length >= count, { what: `${count} deliveries` }),
    restart: async (meanwhile) => {
      await scene.service.stop()
      meanwhile?.()
      await start()
    },
  }
  beforeAll(async () => {
    Object.assign(parts, { store: await openStore() })
  })
  beforeEach(async () => {
    accounts++
    clock = options.clock?.()
    tracer = options.tracer?.()
    Object.assign(parts, { sink: await startSink() })
    await start()
  })
  afterEach(async () => {
    await options.tidy?.(scene)
    await scene.service.stop()
    await scene.sink.close()
  })
  return scene
}

async function ask(service: QueueUnderTest, method: string, target: string, body: unknown) {
  const init = { method, headers: service.auth, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const response = await fetch(service.url + target, init)
  const text = await response.text()
  const answer: unknown = text === '' ? undefined : JSON.parse(text)
  return { status: response.status, answer }
}
