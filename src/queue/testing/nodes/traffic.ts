import { isObject } from '../../../base/index.js'
import { isError } from '../../../contract/errors/errors.js'
import { cancelMessage, enqueueMessage, publishMessage } from '../../../contract/queue/messages.js'
import { createSchedule } from '../../../contract/queue/schedules.js'
import { isReply } from '../../../http/index.js'
import { KEYS, type Ledger, QUEUE, type Tracked } from './ledger.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Stage } from './stage.js'
import type { Timeline } from './timeline.js'

const HOSTS = ['one', 'two', 'three', 'four']
const MAX_DELAY_S = 8
const QUICK_RETRIES = { 'upstash-retries': '4', 'upstash-retry-delay': '1000' }

interface Publication {
  readonly key?: string
  readonly queue?: string
  readonly delay?: number
  readonly hasCallback: boolean
}

/** The clients of the simulation: they publish and cancel at random. */
export class Traffic {
  readonly #timeline: Timeline
  readonly #ledger: Ledger
  readonly #nodes: () => readonly SimulatedNode[]
  #made = 0

  constructor({ timeline, ledger, nodes }: Pick<Stage, 'timeline' | 'ledger' | 'nodes'>) {
    this.#timeline = timeline
    this.#ledger = ledger
    this.#nodes = nodes
  }

  /** A random action of a client. */
  act(): void {
    const { random } = this.#timeline
    if (random.chance(0.15)) this.#cancel()
    else this.publish(this.#anyMessage())
  }

  #anyMessage(): Publication {
    const { random } = this.#timeline
    const kind = random.pick(['plain', 'plain', 'late', 'late', 'key', 'key', 'queue'] as const)
    if (kind === 'queue') return { queue: QUEUE, hasCallback: random.chance(0.2) }
    const key = kind === 'key' ? random.pick(Object.keys(KEYS)) : undefined
    if (key !== undefined) return { key, hasCallback: false }
    const delay = kind === 'late' ? this.#timeline.between(1, MAX_DELAY_S) : 0
    return { delay, hasCallback: random.chance(0.1) }
  }

  /** A client publishes a message at a random node. */
  publish(how: Publication) {
    const node = this.#timeline.random.pick(
      this.#nodes().filter(({ phase }) => phase === 'open' || phase === 'draining'),
    )
    if (!node) return undefined
    const { key, queue, delay = 0, hasCallback } = how
    const message = this.#ledger.publish({ label: `m${++this.#made}`, key, queue, hasCallback })
    const host = this.#timeline.random.pick(HOSTS)
    const destination = `http://${host}.test/${message.label}`
    const headers: Record<string, string> = { ...QUICK_RETRIES }
    if (delay > 0) headers['upstash-delay'] = `${delay}s`
    if (hasCallback) {
      headers['upstash-callback'] = `http://back.test/back-${message.label}`
      headers['upstash-callback-retry-delay'] = '1000'
    }
    if (key !== undefined) Object.assign(headers, keyHeaders(key))
    if (queue === undefined && this.#made % 3 === 0) headers['homeport-priority'] = this.#made % 2 === 0 ? '60' : '-60'
    this.#timeline.note(
      `${node.process.name}: a client publishes ${message.label} ${key ?? queue ?? ''} ${delay ? `in ${delay} s` : ''}`,
    )
    this.#at(node, () => {
      const params = queue === undefined ? { destination } : { destination, queueName: queue }
      return node
        .call(queue === undefined ? publishMessage : enqueueMessage, { params, headers })
        .then((answer) => this.#published(message, answer))
    })
    return message
  }

  #published(message: Tracked, answer: unknown): void {
    const value: unknown = isReply(answer) ? answer.value : answer
    if (!isObject(value) || typeof value.messageId !== 'string') return
    message.messageId = value.messageId
    message.isAcknowledged = true
    message.acknowledgedAt = this.#timeline.now
  }

  #cancel(): void {
    const { random } = this.#timeline
    const candidates = [...this.#ledger.tracked.values()].filter(
      ({ isAcknowledged, isCancelled, successes }) => isAcknowledged && !isCancelled && successes === 0,
    )
    const message = random.pick(candidates)
    const node = random.pick(this.#nodes().filter(({ phase }) => phase === 'open'))
    if (!message?.messageId || !node) return
    const { messageId, label } = message
    this.#timeline.note(`${node.process.name}: a client cancels ${label}`)
    const { losses } = this.#ledger
    this.#at(node, async () => {
      await node.call(cancelMessage, { params: { messageId } })
      this.#timeline.note(`${node.process.name}: ${label} is cancelled`)
      message.isCancelled = this.#ledger.losses === losses
      message.cancelledAt = this.#timeline.now
    })
  }

  /** Creates a schedule that fires every minute. */
  schedule(id: string): void {
    const node = this.#nodes()[0]
    if (!node) return
    const headers = { ...QUICK_RETRIES, 'upstash-cron': '* * * * *', 'upstash-schedule-id': id }
    const params = { destination: `http://one.test/${id}` }
    this.#at(node, () => node.call(createSchedule, { params, headers }))
  }

  /** A client's request reaches a node. If the node refuses it, or its outcome is unknown, it is not acknowledged. */
  #at(node: SimulatedNode, ask: () => Promise<unknown>): void {
    const failed = (error: unknown): void => {
      const isExpected = ['store_unavailable', 'store_outcome_unknown', 'message_not_found'] as const
      if (!isExpected.some((code) => isError(error, code))) this.#timeline.fail(`a client got ${String(error)}`)
    }
    this.#timeline.after(0, () => void ask().catch(failed), node.process)
  }
}

function keyHeaders(key: string): Record<string, string> {
  const { parallelism, rate, periodMs } = KEYS[key] ?? {}
  const values = [
    ...(parallelism === undefined ? [] : [`parallelism=${parallelism}`]),
    ...(rate === undefined ? [] : [`rate=${rate}`, `period=${(periodMs ?? 1_000) / 1_000}s`]),
  ]
  return { 'upstash-flow-control-key': key, 'upstash-flow-control-value': values.join(', ') }
}
