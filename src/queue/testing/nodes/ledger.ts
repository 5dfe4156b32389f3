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

/** The clocks of two nodes differ by at most this much, and so does a clock from itself after it was set. */
const CLOCKS_APART_MS = 1_800

/** Nodes have followed a store that has lost commits, also by slow looks, and the requests of before have ended. */
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

/** What clients and destinations know. It sees every request and checks what must hold when one begins. */
export class Ledger {
  readonly #timeline: Timeline
  readonly #memory: MemoryStore
  readonly tracked = new Map<string, Tracked>()
  readonly flights = new Set<Flight>()
  /** By message: when its last request was over. */
  readonly overAt = new Map<string, number>()
  readonly #open = new Map<string, Set<Flight>>()
  readonly #uses = new Map<string, KeyUse>()
  /** Fires of schedules, `<schedule> <due time>`, and when they were. */
  readonly #fires = new Map<string, number>()
  requests = 0
  /** How often the store has lost commits. */
  losses = 0
  /** Until then, nodes act by what the store has lost. */
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

  /** I4: a queue with one turn delivers in the order of arrival. */
  #first(message: Tracked, url: string): void {
    message.firstStartAt = this.#timeline.now
    if (message.queue === undefined || this.isUnsure) return
    const [before] = this.#memory.run(census.unendedBefore, { queue: message.queue, url })
    if (before) this.#timeline.fail(`I4: ${message.label} was sent before message ${before.seq} of its queue had ended`)
  }

  /** I5. */
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
      // After a takeover the period of the owner is another one than here, until nothing begins for a period.
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

  /** A node owns a partition whose last owner has left no notes, or a clock was set: a period may begin again. */
  takenOver(partition: number | 'any'): void {
    for (const [key, use] of this.#uses) {
      if (partition === 'any' || partitionOfKey(ACCOUNT, key) === partition) use.takeovers++
    }
  }

  /**
   * Commits since then are lost: what they stored may be gone, and what they ended may happen again.
   * @param backAt when the store answers again.
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

  /** I6. */
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
