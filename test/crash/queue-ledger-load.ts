import { pause, systemClock } from '../../src/base/index.js'
import type { RunningHomeport } from '../support/index.js'
import { FAST, type Pace, think } from './pace.js'
import type { QueueDestinations } from './queue-destinations.js'
import type { Burst, Expectation, QueueLedger } from './queue-ledger.js'

/** Never due during a test: schedules fire when the test changes their stored time. */
export const RARELY = '0 0 29 2 *'
/** A FIFO queue has at most this many pending messages, so that the backlog of one life does not fill the next. */
const MAX_WAITING = 20
const QUEUES = ['alpha', 'beta']
/** Time between two looks at what the server has done. */
const BETWEEN_LOOKS_MS = 50
const PUBLISHERS = 3
/** Messages of a burst, and bursts per life. */
const BURST = 3
const BURSTS = 100
/** How long a message with a singleton key waits before it is sent. */
const SINGLE_WAITS_S = 3
/** Schedules created per life. */
const SCHEDULES = 5
const RETRY_SOON = { 'upstash-retry-delay': '20' }

/** Source of ids that are unique across all lives. */
let made = 0
const nextId = (): string => String(++made)
const nextInQueue = new Map(QUEUES.map((name) => [name, 0]))

/** Everything that a caller works with. */
export interface Scene {
  readonly homeport: RunningHomeport
  readonly destinations: QueueDestinations
  readonly ledger: QueueLedger
}

type Headers = Record<string, string>

/** An error response. */
class Refused extends Error {
  readonly status: number

  constructor(what: string, status: number, body: unknown) {
    super(`${what} was answered ${status} ${JSON.stringify(body)}`)
    this.status = status
  }
}

async function asked(scene: Scene, method: string, path: string, headers: Headers = {}, json?: unknown) {
  const { status, body } = await scene.homeport.queue(method, path, json, headers)
  if (status >= 300) throw new Refused(`${method} ${path}`, status, body)
  return body
}

async function publish(scene: Scene, path: string, expected: Expectation, headers: Headers = {}): Promise<string> {
  const answer = await asked(scene, 'POST', `/v2/publish/${scene.destinations.url}/${path}`, headers)
  const { messageId } = answer as { messageId: string }
  scene.ledger.accept(messageId, expected)
  return messageId
}

async function publishSome(scene: Scene): Promise<void> {
  const id = nextId()
  const callbacks = {
    'upstash-callback': `${scene.destinations.url}/callback/${id}`,
    'upstash-failure-callback': `${scene.destinations.url}/failure/${id}`,
  }
  await publish(scene, `observed/${id}`, 'delivered', callbacks)
  await publish(scene, `flaky/${id}`, 'delivered', { ...RETRY_SOON, ...callbacks })
  await publish(scene, `dead/${id}`, 'dead', { ...RETRY_SOON, 'upstash-retries': '1', ...callbacks })
  await publish(scene, `ok/later-${id}`, 'pending', { 'upstash-delay': '7d' })
}

async function publishBatch(scene: Scene): Promise<void> {
  const paths = Array.from({ length: 10 }, () => `ok/${nextId()}`)
  scene.ledger.batches.push(paths)
  const items = paths.map((path, index) => ({
    destination: `${scene.destinations.url}/${path}`,
    ...(index % 3 === 0 && { queue: 'gamma' }),
  }))
  const answers = (await asked(scene, 'POST', '/v2/batch', {}, items)) as { messageId: string }[]
  for (const { messageId } of answers) scene.ledger.accept(messageId, 'delivered')
}

/** A message for each endpoint of a URL group, in one commit. */
async function publishToGroup(scene: Scene): Promise<void> {
  const endpoints = ['left', 'right'].map((name) => ({ name, url: `${scene.destinations.url}/ok/${name}-${nextId()}` }))
  const group = `group-${nextId()}`
  await asked(scene, 'POST', `/v2/topics/${group}/endpoints`, {}, { endpoints })
  scene.ledger.batches.push(endpoints.map(({ url }) => url.slice(scene.destinations.url.length + 1)))
  const answers = (await asked(scene, 'POST', `/v2/publish/${group}`)) as { messageId: string }[]
  for (const { messageId } of answers) scene.ledger.accept(messageId, 'delivered')
}

/** Publishes the same message twice, like a client that missed the first answer, with a flow-control key. */
async function publishOnce(scene: Scene): Promise<void> {
  const id = nextId()
  const path = `narrow/once-${id}`
  const headers = {
    'upstash-deduplication-id': `once-${id}`,
    'upstash-flow-control-key': 'narrow',
    'upstash-flow-control-value': 'parallelism=2',
    'homeport-priority': String(((made % 3) - 1) * 60),
  }
  scene.ledger.once.add(path)
  const sent = [publish(scene, path, 'delivered', headers), publish(scene, path, 'delivered', headers)]
  for (const outcome of await Promise.allSettled(sent)) if (outcome.status === 'rejected') throw outcome.reason
}

async function enqueue(scene: Scene, queue: string): Promise<void> {
  const { ledger, destinations } = scene
  const number = (nextInQueue.get(queue) ?? 0) + 1
  nextInQueue.set(queue, number)
  const path = `fifo/${queue}/${number}`
  const headers = { ...RETRY_SOON, 'upstash-callback': `${destinations.url}/fifo-callback/${queue}/${number}` }
  const answer = await asked(scene, 'POST', `/v2/enqueue/${queue}/${destinations.url}/${path}`, headers)
  ledger.accept((answer as { messageId: string }).messageId, 'delivered')
  const { lag } = (await asked(scene, 'GET', `/v2/queues/${queue}`)) as { lag: number }
  if (lag > MAX_WAITING) await pause(systemClock, BETWEEN_LOOKS_MS)
}

/** Cancels a message that is being sent and never answered, and a delayed one. */
async function cancel(scene: Scene): Promise<void> {
  const { ledger, destinations } = scene
  const silent = await publish(scene, `silent/${nextId()}`, 'cancelled', { 'upstash-label': 'silent' })
  const waiting = await publish(scene, `ok/${nextId()}`, 'cancelled', {
    'upstash-delay': '1d',
    'upstash-label': 'silent',
  })
  await asked(scene, 'DELETE', `/v2/messages/${silent}`)
  await asked(scene, 'DELETE', `/v2/messages?messageIds=${waiting}`)
  await destinations.settled()
  for (const messageId of [silent, waiting]) ledger.sealed.add(messageId)
}

/** Publishes a burst of messages with one debounce key. */
async function publishBurst(scene: Scene): Promise<void> {
  const path = `ok/burst-${nextId()}`
  const headers = { 'homeport-debounce': path, 'homeport-debounce-delay': '1s' }
  const burst: Burst = { acknowledged: [], replaced: new Set(), isComplete: false }
  scene.ledger.bursts.set(path, burst)
  for (let message = 0; message < BURST; message++) {
    const answer = await asked(scene, 'POST', `/v2/publish/${scene.destinations.url}/${path}`, headers)
    const { messageId, replaced } = answer as { messageId: string; replaced?: string }
    burst.acknowledged.push(messageId)
    if (replaced === undefined) continue
    burst.replaced.add(replaced)
    scene.ledger.sealed.add(replaced)
  }
  burst.isComplete = true
}

/** Publishes a message with a singleton key, and another one that must not be stored while the first waits. */
async function publishSingle(scene: Scene): Promise<void> {
  const path = `ok/single-${nextId()}`
  const headers = {
    'homeport-singleton': path,
    'homeport-singleton-mode': 'skip',
    'upstash-delay': `${SINGLE_WAITS_S}s`,
  }
  const beganAt = performance.now()
  const messageId = await publish(scene, path, 'delivered', headers)
  const again = await asked(scene, 'POST', `/v2/publish/${scene.destinations.url}/${path}`, headers)
  const { messageId: other } = again as { messageId: string }
  // Repeats of a request while servers are away may take so long that the first message has been delivered meanwhile.
  if (performance.now() - beganAt > SINGLE_WAITS_S * 1_000) return
  scene.ledger.once.add(path)
  if (other !== messageId) throw new Error(`the singleton key ${path} has ${messageId} and ${other}`)
}

/** Retries a dead letter. */
async function revive(scene: Scene): Promise<void> {
  const path = `revive/${nextId()}`
  const messageId = await publish(scene, path, 'dead')
  for (;;) {
    const page = (await asked(scene, 'GET', `/v2/dlq?messageId=${messageId}`)) as { messages: { dlqId: string }[] }
    const [letter] = page.messages
    if (!letter) {
      await pause(systemClock, BETWEEN_LOOKS_MS)
      continue
    }
    scene.ledger.once.add(path)
    const again = (await asked(scene, 'POST', `/v2/dlq/retry/${letter.dlqId}`)) as { messageId: string }
    scene.ledger.accept(again.messageId, 'delivered')
    return
  }
}

/** Creates a schedule, which the test makes fire later. */
async function schedule(scene: Scene): Promise<void> {
  const headers = { 'upstash-cron': RARELY }
  const answer = await asked(scene, 'POST', `/v2/schedules/${scene.destinations.url}/ok/${nextId()}`, headers)
  scene.ledger.fires.set((answer as { scheduleId: string }).scheduleId, 0)
}

/** A caller: repeats an action, at most `times` times, until it decides to stop. */
export type Repeat = (name: string, action: () => Promise<void>, times?: number) => Promise<void>

/** Whether a failure is the server's answer to a wrong request, which no outage explains. */
export const isRefusal = (error: unknown): boolean => error instanceof Refused && error.status < 500

/** Repeats an action until it fails because the server is gone. A running server must not refuse it. */
const untilGone =
  (pace: Pace): Repeat =>
  async (_name, action, times = Number.POSITIVE_INFINITY) => {
    try {
      for (let time = 0; time < times; time++) {
        await action()
        await think(pace)
      }
    } catch (error) {
      if (isRefusal(error)) throw error
    }
  }

/** How callers repeat their actions. */
export interface LoadOptions {
  readonly pace?: Pace
  /** Default: until the server stops answering. */
  readonly repeat?: Repeat
}

/** Starts callers of every operation; resolves when all have stopped. */
export function startQueueLoad(
  scene: Scene,
  { pace = FAST, repeat = untilGone(pace) }: LoadOptions = {},
): Promise<unknown> {
  return Promise.all([
    ...Array.from({ length: pace.few(PUBLISHERS) }, () => repeat('publish', () => publishSome(scene))),
    repeat('batch', () => publishBatch(scene)),
    repeat('group', () => publishToGroup(scene)),
    repeat('once', () => publishOnce(scene)),
    repeat('burst', () => publishBurst(scene), BURSTS),
    repeat('singleton', () => publishSingle(scene), BURSTS),
    ...QUEUES.map((queue) => repeat(`queue ${queue}`, () => enqueue(scene, queue))),
    repeat('cancel', () => cancel(scene)),
    repeat('revive', () => revive(scene)),
    repeat('schedule', () => schedule(scene), SCHEDULES),
  ])
}
