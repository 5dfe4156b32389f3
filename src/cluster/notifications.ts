import { tryParseJson } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { isPassing, type Store } from '../store/index.js'
import type { ClusterMeter, Logger } from '../telemetry/index.js'
import type { PeerAddress, PeerLink, PeerRequest } from './peer-link.js'
import * as announcementRows from './transactions/cluster-announcements.js'
import * as nodeRows from './transactions/cluster-nodes.js'
import type { Seen } from './transactions/cluster-partitions.js'
import type { Incarnation, Peer, PeerAnswer, PeerHandler } from './types.js'

/** How long to wait for the answer of a node. */
const ANSWER_WITHIN_MS = 1_000
/** How long `notify` waits until an announcement is handled. A node that does not beat is declared dead long before this. */
const GIVE_UP_AFTER_MS = 15_000
const ASK_AGAIN_MS = 100

type Announcement = Seen['announcements'][number]

/** Topics begin with the name of the module that sends and handles them. */
const moduleOf = ({ topic }: Announcement): string => topic.split('.', 1)[0] ?? ''

/** What `Notifications` is built from. */
export interface NotificationsDeps {
  readonly store: Store
  readonly link: PeerLink
  readonly logger: Logger
  readonly meter: ClusterMeter
  readonly me: () => Incarnation
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Whether this incarnation is over, so that `notify` stops waiting. */
  readonly isOver: () => boolean
}

/** Sends notifications, hints and requests to other nodes, and handles theirs. */
export class Notifications {
  readonly #deps: NotificationsDeps
  readonly #handlers = new Map<string, PeerHandler>()
  #seen = 0
  /** Versions of announcements that were handled although an earlier one has not been. */
  readonly #ahead = new Set<number>()
  /** Since when an announcement has failed permanently, by version. */
  readonly #failingSinceMs = new Map<number, number>()
  #isHandling = false

  constructor(deps: NotificationsDeps) {
    this.#deps = deps
  }

  /** The version up to which all announcements were handled. */
  get seen(): number {
    return this.#seen
  }

  /**
   * This incarnation begins. Earlier announcements do not matter to it, because it has not read anything from the store yet.
   */
  begin(seen: number): void {
    this.#seen = seen
  }

  handle(topic: string, handler: PeerHandler): void {
    if (this.#handlers.has(topic)) throw new Error(`two handlers of the topic ${topic}`)
    this.#handlers.set(topic, handler)
  }

  /** Handles what another node sent. */
  async receive({ topic, payload, from }: PeerRequest): Promise<unknown> {
    const handler = this.#handlers.get(topic)
    if (!handler) throw new Error(`no handler of the topic ${topic}`)
    return (await handler(payload, from)) ?? null
  }

  /** Notifies all other nodes; see `Cluster.notify`. */
  async notify(topic: string, payload: unknown): Promise<void> {
    const { store, link, me, meter, wallMs } = this.#deps
    const others = (await store.run(nodeRows.list, {})).filter(({ incarnation }) => incarnation !== me())
    const answers = await Promise.allSettled(others.map((peer) => link.request(peer, topic, payload, ANSWER_WITHIN_MS)))
    const silent = others.filter((_, index) => answers[index]?.status === 'rejected').map((peer) => peer.incarnation)
    if (silent.length === 0) return
    meter.announcements++
    const text = JSON.stringify(payload ?? null)
    const version = await store.run(announcementRows.announce, { sender: me(), topic, payload: text, now: wallMs() })
    await this.#untilAware(version, new Set(silent))
  }

  async #untilAware(version: number, silent: ReadonlySet<Incarnation>): Promise<void> {
    const { store, nowMs, pause, isOver } = this.#deps
    const endMs = nowMs() + GIVE_UP_AFTER_MS
    while (!isOver() && nowMs() < endMs) {
      const behind = await store.run(announcementRows.incarnationsBehind, { version }).catch(() => undefined)
      if (behind && !behind.some((incarnation) => silent.has(incarnation))) return
      await pause(ASK_AGAIN_MS)
    }
    throw new HomeportError('store_unavailable', {})
  }

  /**
   * Handles announcements in their order. If a handler fails, the next look handles the announcement again.
   * Later announcements of the same module wait for it; those of other modules do not. An announcement that can
   * never be handled is set aside, but not before its sender has given up and reported that to its caller.
   * Resolves with whether `seen` has advanced.
   */
  async handleAll(announcements: Seen['announcements']): Promise<boolean> {
    if (this.#isHandling) return false
    this.#isHandling = true
    const before = this.#seen
    const failed = new Set<string>()
    try {
      for (const one of announcements) {
        if (one.version <= before || this.#ahead.has(one.version) || failed.has(moduleOf(one))) continue
        if (await this.#handle(one)) this.#ahead.add(one.version)
        else failed.add(moduleOf(one))
      }
      for (const { version } of announcements) {
        if (version > before && !this.#ahead.delete(version)) break
        this.#seen = Math.max(version, this.#seen)
      }
    } finally {
      this.#isHandling = false
    }
    return this.#seen > before
  }

  /** Returns whether later announcements of the same module may be handled. */
  async #handle({ topic, payload, sender, version }: Announcement): Promise<boolean> {
    const { logger } = this.#deps
    const handler = this.#handlers.get(topic)
    if (!handler)
      logger.error('cluster_announcement_set_aside', { topic, seq: version, error: new Error('unknown topic') })
    try {
      await handler?.(tryParseJson(payload), sender)
    } catch (error) {
      const isHopeless = this.#isHopeless(version, error)
      if (isHopeless) logger.error('cluster_announcement_set_aside', { topic, seq: version, error })
      else logger.error('cluster_announcement_failed', { error })
      if (!isHopeless) return false
    }
    this.#failingSinceMs.delete(version)
    return true
  }

  /** Whether an announcement has failed permanently for longer than its sender waits. */
  #isHopeless(version: number, error: unknown): boolean {
    if (isPassing(error)) return false
    const nowMs = this.#deps.nowMs()
    const sinceMs = this.#failingSinceMs.get(version) ?? nowMs
    this.#failingSinceMs.set(version, sinceMs)
    return nowMs - sinceMs > GIVE_UP_AFTER_MS
  }

  /** Sends a hint without waiting. It may get lost. */
  hint(peer: PeerAddress, topic: string, payload: unknown): void {
    this.#deps.link.request(peer, topic, payload, ANSWER_WITHIN_MS).catch(() => undefined)
  }

  /** Asks nodes. Nodes that do not answer are left out. */
  async ask(peers: readonly Peer[], topic: string, payload: unknown): Promise<readonly PeerAnswer[]> {
    const { link } = this.#deps
    const answers = peers.map(async (peer): Promise<readonly PeerAnswer[]> => {
      const answer = link.request(peer, topic, payload, ANSWER_WITHIN_MS)
      return answer.then(
        (value) => [{ peer, answer: value }],
        () => [],
      )
    })
    return (await Promise.all(answers)).flat()
  }
}
