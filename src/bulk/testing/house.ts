import { systemClock } from '../../base/index.js'
import { type QueueUnderTest, type QueueUnderTestOptions, ROOMY, startQueue } from '../../queue/testing/harness.js'
import type { Store } from '../../store/index.js'
import { silentLogger } from '../../telemetry/index.js'
import { createWorkflow } from '../../workflow/index.js'
import { type Bulk, createBulk } from '../index.js'
import type { Answer } from './harness.js'

/** The queue, workflows and bulk actions as the server composes them. */
export interface House extends QueueUnderTest {
  readonly bulk: Bulk
  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
}

/** Starts the three rooms over a store, behind one listener. */
export async function startHouse(
  store: Store,
  options: Pick<QueueUnderTestOptions, 'deliveryTargets'> = {},
): Promise<House> {
  let bulk: Bulk | undefined
  const service = await startQueue({
    ...options,
    store,
    extend: (queue) => {
      const shared = { store, queue, clock: systemClock, logger: silentLogger, ...ROOMY }
      const workflow = createWorkflow({ ...shared, accountOfUser: () => undefined, publicUrl: 'http://127.0.0.1' })
      bulk = createBulk(shared)
      workflow.guard(bulk.gate)
      queue.delegateLargeCancels(bulk.cancelMessages)
      return [...workflow.routes(), ...bulk.routes()]
    },
  })
  if (!bulk) throw new Error('the queue did not ask for further rooms')
  const made = bulk
  await made.start()
  return {
    ...service,
    bulk: made,
    ask: async (method, path, body, headers = {}) => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const response = await fetch(service.url + path, { method, headers: { ...service.auth, ...headers }, ...sent })
      const text = await response.text()
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
    },
    stop: async () => {
      await made.stop()
      await service.stop()
    },
  }
}
