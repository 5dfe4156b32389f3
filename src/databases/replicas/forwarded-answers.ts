import { unreachable } from '../../base/index.js'
import type { Incarnation } from '../../cluster/index.js'
import { digestOfToken } from '../directory.js'
import type { ForwardedQuestion } from './messages.js'

/** How a client has asked for a database of another node: by its port, a token, or a server name. */
export type DatabaseLookup =
  | { readonly kind: 'port'; readonly databaseId: string }
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'name'; readonly serverName: string }

/** The key under which the answers to such a client are counted. */
export function keyOf(by: DatabaseLookup): string {
  switch (by.kind) {
    case 'port':
      return by.databaseId
    case 'token':
      return digestOfToken(by.token)
    case 'name':
      return by.serverName
    default:
      return unreachable(by)
  }
}

/** Maximum keys that are counted one by one. */
const MAX_KEYS = 100_000
/** How long a node counts as the one that keeps a replica after it has asked. */
const NEAR_FOR_MS = 3_000
const MAX_NEAR = 10_000

/** The replica of a database at another node of this node's region. */
interface RegionReplica {
  readonly incarnation: Incarnation
  readonly askedMs: number
}

/**
 * The part of this node when another node of its region keeps a replica. It counts the answers of the home that it passes
 * to clients, for the node that keeps the replica, and remembers which node that is.
 *
 * Answers are counted by what the client has asked with: the id of the database (its port), the digest of a token, or a
 * server name. So a database has several keys, and the node that keeps its replica asks for all of them.
 */
export class ForwardedAnswers {
  readonly #counts = new Map<string, number>()
  /** Every key that is not in the map has been counted this often. */
  #base = 0
  readonly #near = new Map<string, RegionReplica>()

  /** Counts an answer of the home that is about to be passed to a client. */
  count(key: string): void {
    const known = this.#counts.get(key)
    if (known === undefined && this.#counts.size >= MAX_KEYS) this.#forgetAll()
    this.#counts.set(key, (known ?? this.#base) + 1)
  }

  /** Answers a question: the number differs if anything was passed on since the last question. */
  answerQuestion({ databaseId, keys }: ForwardedQuestion, from: Incarnation): { readonly count: number } {
    const near = { incarnation: from, askedMs: performance.now() }
    for (const key of [databaseId, ...keys]) {
      this.#near.delete(key)
      this.#near.set(key, near)
    }
    for (const key of this.#near.keys()) {
      if (this.#near.size <= MAX_NEAR) break
      this.#near.delete(key)
    }
    return { count: [databaseId, ...keys].reduce((sum, key) => sum + (this.#counts.get(key) ?? this.#base), 0) }
  }

  /** The node of this region that keeps a replica, by a key of the database. */
  replicaNode(key: string): Incarnation | undefined {
    const near = this.#near.get(key)
    return near && performance.now() - near.askedMs < NEAR_FOR_MS ? near.incarnation : undefined
  }

  /** Called when a node could not be reached: its replicas are not used until it asks again. */
  forgetNode(incarnation: Incarnation): void {
    for (const [key, near] of this.#near) if (near.incarnation === incarnation) this.#near.delete(key)
  }

  /** Continues to count above all earlier counts, so that each of them has changed. */
  #forgetAll(): void {
    for (const count of this.#counts.values()) this.#base = Math.max(this.#base, count)
    this.#base++
    this.#counts.clear()
  }
}
