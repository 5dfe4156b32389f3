import { partitionOfKey } from '../../../cluster/index.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import type { SendRequest } from '../../sending/sender.js'
import * as census from './census.js'
import type { Timeline } from './timeline.js'

/** The account of everything in a simulation. */
export const ACCOUNT = 'acc_sim'

/** A flow-control key of the simulation. */
export interface KeyLimits {
  readonly parallelism: number | undefined
  readonly rate: number | undefined
  readonly periodMs: number
}

/** The limits of each key, which every message of the key repeats. */
export const KEYS: Readonly<Record<string, KeyLimits>> = {
  side: { parallelism: 2, rate: undefined, periodMs: 1_000 },
  paced: { parallelism: undefined, rate: 3, periodMs: 4_000 },
  both: { parallelism: 1, rate: 4, periodMs: 3_000 },
}

/** A queue whose messages are delivered one after the other. */
export const QUEUE = 'line'

/** Most difference between the clocks of two nodes, and between the times of one clock before and after it is set. */
const CLOCKS_APART_MS = 1_800

/**
 * This long after the store has lost commits, all nodes have noticed, even by slow looks, and earlier requests have ended.
 */
const UNSURE_FOR_MS = 16_000

/** A node that sends requests, as far as the ledger knows it. */
interface SendingNode {
  readonly process: { readonly name: string }
  readonly isGone: boolean
}

/** A request at its destination. */
export interface Flight {
  readonly label: string
  readonly messageId: string | undefined
  readonly node: SendingNode
  readonly startedAt: number
  isOpen: boolean
}

/** A message that a client has published, or tried to. */
export interface Tracked {
  readonly label: string
  readonly key: string | undefined
  readonly queue: string | undefined
  readonly hasCallback: boolean
  messageId?: string
  isAcknowledged: boolean
  acknowledgedAt: number
  /** The store may have lost it. */
  mayBeGone: boolean
  isCancelled: boolean
  cancelledAt: number
  starts: number
  firstStartAt: number
  successes: number
}

interface KeyUse {
  windowAt: number
  lastAt: number
  begun: number
  takeovers: number
}

/** What clients and destinations know. It sees every request and checks the invariants I4, I5, I6 and I8. */
export class Ledger {
  readonly #timeline: Timeline
  readonly #memory: MemoryStore
  readonly tracked = new Map<string, Tracked>()
  readonly flights = new Set<Flight>()
  /** When the last request of a message was over, by message id. */
  readonly overAt = new Map<string, number>()
  readonly #open = new Map<string, Set<Flight>>()
  readonly #uses = new Map<string, KeyUse>()
  /** When schedules fired, by `<schedule> <due time>`. */
  readonly #fires = new Map<string, number>()
  requests = 0
  /** How often the store has lost commits. */
  losses = 0
  /** Until then, nodes may still act on commits that the store has lost. */
  #unsureUntil = 0

  constructor({ timeline, memory }: { readonly timeline: Timeline; readonly memory: MemoryStore }) {
    this.#timeline = timeline
    this.#memory = memory
  }

  /** A client is about to publish. */
  publish(message: Pick<Tracked, 'label' | 'key' | 'queue' | 'hasCallback'>): Tracked {
    const made: Tracked = {
      ...message,
      isAcknowledged: false,
      acknowledgedAt: 0,
      mayBeGone: false,
      isCancelled: false,
      cancelledAt: 0,
      starts: 0,
      firstStartAt: 0,
      successes: 0,
    }
    this.tracked.set(made.label, made)
    return made
  }

  /** A request arrives. */
  begin(node: SendingNode, { url, headers }: Pick<SendRequest, 'url' | 'headers'>): Flight {
    const label = new URL(url).pathname.slice(1)
    const messageId = headers[headers.indexOf('Upstash-Message-Id') + 1]
    const flight: Flight = { label, messageId, node, startedAt: this.#timeline.now, isOpen: true }
    this.requests++
    this.flights.add(flight)
    this.#timeline.note(`${node.process.name}: sends ${label}`)
    const message = this.tracked.get(label)
    if (!message) return flight
    if (message.isCancelled) this.#timeline.fail(`I8: ${label} was sent after the answer to its cancel`)
    if (message.starts++ === 0) this.#first(message, url)
    if (message.key !== undefined) this.#useKey(message.key, flight)
    return flight
  }

  /** A request is over for its destination. */
  end(flight: Flight): void {
    if (!flight.isOpen) return
    flight.isOpen = false
    this.flights.delete(flight)
    if (flight.messageId !== undefined) this.overAt.set(flight.messageId, this.#timeline.now)
    const key = this.tracked.get(flight.label)?.key
    if (key !== undefined) this.#open.get(key)?.delete(flight)
  }

  /** Notes the first request of a message. I4: a queue with one turn delivers in the order of arrival. */
  #first(message: Tracked, url: string): void {
    message.firstStartAt = this.#timeline.now
    if (message.queue === undefined || this.isUnsure) return
    const [before] = this.#memory.run(census.unendedBefore, { queue: message.queue, url })
    if (before) this.#timeline.fail(`I4: ${message.label} was sent before message ${before.seq} of its queue had ended`)
  }

  /** I5: a flow-control key stays within its limits. */
  #useKey(key: string, flight: Flight): void {
    const limits = KEYS[key]
    if (!limits) return
    const open = this.#open.get(key) ?? new Set()
    this.#open.set(key, open.add(flight))
    const alive = [...open].filter(({ node }) => !node.isGone)
    if (this.isUnsure) return
    if (limits.parallelism !== undefined && alive.length > limits.parallelism) {
      const names = alive.map(({ label, node }) => `${label} of ${node.process.name}`).join(', ')
      this.#timeline.fail(`I5: ${alive.length} requests are open under the key ${key}: ${names}`)
    }
    if (limits.rate !== undefined) this.#count(key, limits.rate, limits.periodMs)
  }

  #count(key: string, rate: number, periodMs: number): void {
    const { now } = this.#timeline
    const use = this.#uses.get(key)
    if (!use || now >= use.windowAt + periodMs) {
      // After a takeover, the owner's period differs from the one counted here, until no request begins for a whole period.
      const isOfOther = use !== undefined && use.takeovers > 0 && now < use.lastAt + periodMs + CLOCKS_APART_MS
      this.#uses.set(key, { windowAt: now, lastAt: now, begun: 1, takeovers: isOfOther ? 1 : 0 })
      return
    }
    use.lastAt = now
    const most = rate * (1 + use.takeovers)
    if (++use.begun > most) {
      this.#timeline.fail(`I5: ${use.begun} requests began within a period of the key ${key}, at most ${most} may`)
    }
  }

  /** A node has taken a partition without notes of its last owner, or a clock was set: periods of keys may begin again. */
  takenOver(partition: number | 'any'): void {
    for (const [key, use] of this.#uses) {
      if (partition === 'any' || partitionOfKey(ACCOUNT, key) === partition) use.takeovers++
    }
  }

  /**
   * The store has lost the commits since a time: what they stored may be gone, and what they ended may happen again.
   * @param backAt when the store is available again.
   */
  lostCommits(since: number, backAt: number): void {
    this.losses++
    this.#unsureUntil = backAt + UNSURE_FOR_MS
    this.#uses.clear()
    for (const message of this.tracked.values()) {
      if (!message.isAcknowledged || message.acknowledgedAt >= since) message.mayBeGone = true
      if (message.cancelledAt >= since) message.isCancelled = false
    }
    for (const [fire, at] of this.#fires) if (at >= since) this.#fires.delete(fire)
  }

  get isUnsure(): boolean {
    return this.#timeline.now < this.#unsureUntil
  }

  /** A schedule has fired. I6: no fire happens twice. */
  fired(scheduleId: string, dueAt: number): void {
    const fire = `${scheduleId} ${dueAt}`
    this.#timeline.note(`schedule ${scheduleId} fires`)
    if (this.#fires.has(fire)) this.#timeline.fail(`I6: the schedule ${scheduleId} fired twice at ${dueAt}`)
    this.#fires.set(fire, this.#timeline.now)
  }

  get fires(): number {
    return this.#fires.size
  }
}
