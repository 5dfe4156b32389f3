/** Which node serves the database that a client of the data plane asks for, by its REST token or its server name. */
import { isObject } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { RemoteNode } from '../http/index.js'
import type { Store } from '../store/index.js'
import { digestOfToken, tokensOf } from './directory.js'
import type { DatabaseRow } from './lifecycle.js'
import * as homes from './transactions/homes.js'

/** The services of a node that clients of databases are passed on to. */
export type DataService = 'rest' | 'redis'

/** What a locator is built from. */
export interface LocatorDeps {
  readonly store: Pick<Store, 'run'>
  /** The name of this node. */
  readonly node: string
  readonly cluster: Pick<Cluster, 'ask' | 'handle' | 'tunnel'>
  /** Whether this node serves a database with a token that has this digest. */
  readonly servesToken: (digest: string) => boolean
  /** The domain of server names; undefined when there are none. */
  readonly domain: string | undefined
  /** Monotonic time, milliseconds. */
  readonly nowMs: () => number
}

const TOKENS = 'databases.tokens'
/** Digests in one question. More wait for the next one. */
const MAX_ASKED = 1_000
/** Maximum lookups that wait at a time, because a stranger can send any number of wrong tokens. */
const MAX_WAITING = 10_000
/** Maximum digests whose node is remembered. */
const MAX_REMEMBERED = 10_000
/** How long the tokens of nodes that do not answer are remembered. */
const ABSENT_FOR_MS = 5_000

/** The tokens of nodes that did not answer, with their nodes. */
interface Absent {
  readonly sinceMs: number
  /** The nodes that answered. */
  readonly answered: string
  readonly nodes: Promise<ReadonlyMap<string, string>>
}

interface Lookup {
  readonly digest: string
  readonly resolve: (node: string | undefined) => void
  readonly reject: (error: unknown) => void
}

/**
 * Finds the home of a database by what a client presents, so that clients may use any node. The home checks everything
 * again, so an old answer of a locator costs a round trip and nothing else.
 *
 * The store has no index of tokens by digest, so the locator asks the other nodes. One question is pending at a time, and
 * the next one contains all tokens that were looked up meanwhile. So wrong tokens cost the other nodes little. The locator
 * reads the tokens of homes that do not answer from the store: their clients get the error that the node is away, not that
 * the token is wrong.
 */
export class Locator {
  readonly #deps: LocatorDeps
  readonly #nodes = new Map<string, string>()
  readonly #leaving = new Map<string, Promise<void>>()
  #waiting: Lookup[] = []
  #isAsking = false
  /** Counts moves. An answer to a question from before a move may be wrong after it. */
  #moves = 0
  #absent: Absent | undefined

  constructor(deps: LocatorDeps) {
    this.#deps = deps
    // While a database moves, the old home answers for its tokens, so that requests wait there, even those that reach the
    // new home too early.
    const answersFor = (digest: string): boolean => deps.servesToken(digest) || this.#leaving.has(digest)
    deps.cluster.handle(TOKENS, (payload) => digestsOf(payload).filter(answersFor))
  }

  /**
   * The node that serves the database of a token; undefined when no node knows it.
   * @throws HomeportError `store_unavailable`
   */
  async byToken(token: string): Promise<RemoteNode | undefined> {
    const digest = digestOfToken(token)
    const node = this.#nodes.get(digest) ?? (await this.#lookUp(digest))
    return node === undefined ? undefined : this.#at(node, 'rest', () => this.#nodes.delete(digest))
  }

  /** Like `byToken`, for the server name (SNI) of a TLS client, in lower case. */
  async byServerName(serverName: string): Promise<RemoteNode | undefined> {
    const { domain, store, node: here } = this.#deps
    if (domain === undefined || !serverName.endsWith(`.${domain}`)) return undefined
    const slug = serverName.slice(0, -domain.length - 1)
    const found = await store.run(homes.findBySlug, { slug })
    return found?.home && found.home !== here ? this.#at(found.home, 'redis', () => undefined) : undefined
  }

  #at(node: string, service: DataService, failed: () => void): RemoteNode {
    const connect = async (ip: string, port?: number) => {
      try {
        return await this.#deps.cluster.tunnel(node, service, ip, port === undefined ? '' : String(port))
      } catch (error) {
        failed()
        throw error
      }
    }
    return { node, connect }
  }

  /**
   * The node that has taken a database over from this one; for a request with its token that another node passed on to this
   * one.
   */
  movedTo(token: string): RemoteNode | undefined {
    const digest = digestOfToken(token)
    const node = this.#nodes.get(digest)
    return node === undefined ? undefined : this.#at(node, 'rest', () => this.#nodes.delete(digest))
  }

  /** Resolves when the move of a token's database has ended; undefined when it is not being moved. */
  whileMoving(token: string): Promise<void> | undefined {
    return this.#leaving.size === 0 ? undefined : this.#leaving.get(digestOfToken(token))
  }

  /**
   * Makes requests with the tokens of a database wait, because it is about to get another home. @returns a function that
   * ends the wait.
   */
  leaving(row: DatabaseRow): () => void {
    let settle = (): void => {}
    const settled = new Promise<void>((resolve) => {
      settle = resolve
    })
    const digests = [...tokensOf(row).keys()]
    for (const digest of digests) this.#leaving.set(digest, settled)
    return () => {
      for (const digest of digests) this.#leaving.delete(digest)
      settle()
    }
  }

  /**
   * Called when a database has another home. Forgets which nodes serve which tokens. The old home passes `row` and
   * remembers the new home for its tokens, because other nodes may still pass requests on to it.
   */
  moved(node: string, row?: DatabaseRow): void {
    this.#moves++
    this.#nodes.clear()
    this.#absent = undefined
    for (const digest of row ? tokensOf(row).keys() : []) this.#remember(digest, node)
  }

  #lookUp(digest: string): Promise<string | undefined> {
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(new HomeportError('lookups_full', {}))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ digest, resolve, reject })
      if (!this.#isAsking) void this.#askAll()
    })
  }

  /** Never rejects. */
  async #askAll(): Promise<void> {
    this.#isAsking = true
    while (this.#waiting.length > 0) {
      const asked = this.#waiting.slice(0, MAX_ASKED)
      this.#waiting = this.#waiting.slice(MAX_ASKED)
      try {
        const found = await this.#ask([...new Set(asked.map(({ digest }) => digest))])
        for (const { digest, resolve } of asked) resolve(found.get(digest))
      } catch (error) {
        for (const { reject } of asked) reject(error)
      }
    }
    this.#isAsking = false
  }

  async #ask(digests: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>()
    const answered = new Set([this.#deps.node])
    const moves = this.#moves
    for (const { peer, answer } of await this.#deps.cluster.ask(TOKENS, { digests })) {
      answered.add(peer.name)
      for (const digest of digestsOf({ digests: answer })) found.set(digest, peer.name)
    }
    if (moves === this.#moves) for (const [digest, node] of found) this.#remember(digest, node)
    if (found.size === digests.length) return found
    return new Map([...(await this.#ofAbsent(answered)), ...found])
  }

  /** Forgets which node serves what, because a database has moved. */
  forget(): void {
    this.#nodes.clear()
    this.#absent = undefined
  }

  #remember(digest: string, node: string): void {
    this.#nodes.set(digest, node)
    const [oldest] = this.#nodes.keys()
    if (this.#nodes.size > MAX_REMEMBERED && oldest !== undefined) this.#nodes.delete(oldest)
  }

  #ofAbsent(answering: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
    const nowMs = this.#deps.nowMs()
    const answered = [...answering].sort().join()
    const known = this.#absent
    if (known?.answered === answered && nowMs - known.sinceMs < ABSENT_FOR_MS) return known.nodes
    const nodes = this.#readAbsent(answering)
    this.#absent = { sinceMs: nowMs, answered, nodes }
    nodes.catch(() => {
      this.#absent = undefined
    })
    return nodes
  }

  async #readAbsent(answered: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
    const { store } = this.#deps
    const nodes = new Map<string, string>()
    for (const home of await store.run(homes.all, {})) {
      if (answered.has(home)) continue
      for (const row of await store.run(homes.servedBy, { home })) {
        for (const digest of tokensOf(row).keys()) nodes.set(digest, home)
      }
    }
    return nodes
  }
}

/** The digests in a message of another node. */
function digestsOf(payload: unknown): string[] {
  const digests = isObject(payload) ? payload.digests : undefined
  if (!Array.isArray(digests)) return []
  return digests.slice(0, MAX_ASKED).filter((digest) => typeof digest === 'string')
}
