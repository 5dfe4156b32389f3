/** The ports of databases that other nodes serve. */
import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { type Clock, isObject, type Timer } from '../base/index.js'
import type { Cluster, Incarnation } from '../cluster/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import { readRegionsOf } from './desired-engine.js'
import { collides, type ListeningPlace, ownNetwork } from './machine.js'
import * as homes from './transactions/homes.js'

/** A port of a database of another node on which this node listens. */
export interface PortElsewhere {
  readonly port: number
  /** Whether the port speaks TLS. */
  readonly tls: boolean
  readonly readRegions: readonly string[]
}

/** What the ports are built from. */
export interface PortsElsewhereDeps {
  readonly store: Pick<Store, 'run'>
  /** The name of this node. */
  readonly node: string
  /** The address that this node listens on. */
  readonly host: string
  readonly cluster: Pick<Cluster, 'ask' | 'handle' | 'tunnel' | 'peers' | 'onNodeGone'>
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
}

/** Called when `databaseIds` have changed; resolves when this node listens as `find` says. Never rejects. */
export type PortsFollower = (databaseIds: readonly string[]) => Promise<void>

const CHANGED = 'databases.ports'
const HELLO = 'databases.hello'
/** Interval at which every node reads all homes, to find changes of which it was not notified. */
const SWEEP_EVERY_MS = 10_000
/** Maximum databases in one message. The sweep finds the others. */
const MAX_CHANGED = 1_000

interface Neighbour extends ListeningPlace {
  readonly node: string
}

/**
 * Decides on which ports this node listens for databases of other nodes: the ports of all homes in the store. If several
 * nodes share a machine and an address, only one of them can listen on a port: the home itself if it is one of them and
 * runs, otherwise the node that a hash chooses. Nodes greet each other when they start, so that a home finds its ports
 * free.
 */
export class PortsElsewhere {
  readonly #deps: PortsElsewhereDeps
  #known = new Map<string, homes.HomePort>()
  /** Databases that changed during the running sweep: their entries are newer than what the sweep reads. */
  readonly #newer = new Set<string>()
  readonly #neighbours = new Map<Incarnation, Neighbour>()
  #own: Neighbour
  #follower: PortsFollower = () => Promise.resolve()
  #timer: Timer | undefined
  #isStopped = false

  constructor(deps: PortsElsewhereDeps) {
    this.#deps = deps
    const { cluster, node, host } = deps
    this.#own = { node, host, network: '' }
    cluster.handle(CHANGED, (payload) => this.#refresh(textsOf(payload, 'databaseIds')))
    cluster.handle(HELLO, (payload, from) => this.#greeted(payload, from))
    cluster.onNodeGone((incarnation) => {
      if (this.#neighbours.delete(incarnation)) void this.#follower([...this.#known.keys()])
    })
  }

  /**
   * Greets the other nodes, so that nodes on this machine release the ports of this node's databases, and reads all homes.
   */
  async start(): Promise<void> {
    this.#own = { ...this.#own, network: await ownNetwork() }
    await this.#greet()
    await this.#sweep()
    this.#sweepLater()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  /** Registers the follower that listens on the ports. Call it once. */
  follow(follower: PortsFollower): Promise<void> {
    this.#follower = follower
    return follower([...this.#known.keys()])
  }

  /** The port of a database on which this node has to listen; undefined: this node does not listen for it. */
  find(databaseId: string): PortElsewhere | undefined {
    const known = this.#known.get(databaseId)
    return known && this.#listensFor(known)
      ? { port: known.port, tls: known.tls === 1, readRegions: regionsOf(known) }
      : undefined
  }

  /**
   * Connects a client to the home of a database.
   * @throws HomeportError `node_unreachable`
   */
  async connect(databaseId: string, client: { readonly ip: string; readonly port: number }): Promise<Duplex> {
    const home = this.#known.get(databaseId)?.home
    if (home === undefined) throw new HomeportError('database_not_found', { databaseId })
    try {
      return await this.#deps.cluster.tunnel(home, 'port', client.ip, `${databaseId} ${client.port}`)
    } catch (cause) {
      throw new HomeportError('node_unreachable', { node: home }, { cause })
    }
  }

  /**
   * Notifies the other nodes that databases have another home or port, begin to serve, or do so no more. Call it after the
   * commit. Resolves when those that answer within a second listen accordingly; the others find it by their sweep, and so
   * does this one if the store cannot be read now. Never rejects.
   */
  async announce(databaseIds: readonly string[]): Promise<void> {
    try {
      // This node may have become the home, or may have been it before.
      await Promise.all([
        this.#refresh(databaseIds),
        this.#deps.cluster.ask(CHANGED, { databaseIds: databaseIds.slice(0, MAX_CHANGED) }),
      ])
    } catch (error) {
      this.#deps.logger.warn('databases_homes_not_read', { error })
    }
  }

  async #refresh(databaseIds: readonly string[]): Promise<void> {
    const found = new Map(
      (await this.#deps.store.run(homes.portsOf, { databaseIds })).map((row) => [row.database_id, row]),
    )
    for (const databaseId of databaseIds) this.#note(databaseId, found.get(databaseId))
    await this.#follower(databaseIds)
  }

  #note(databaseId: string, row: homes.HomePort | undefined): void {
    this.#newer.add(databaseId)
    if (row && row.home !== this.#deps.node) this.#known.set(databaseId, row)
    else this.#known.delete(databaseId)
  }

  async #sweep(): Promise<void> {
    const { store, node, logger } = this.#deps
    this.#newer.clear()
    try {
      const found = await store.run(homes.portsElsewhere, { node })
      const before = this.#known
      const newer = [...this.#newer].flatMap((databaseId) => before.get(databaseId) ?? [])
      const rows = [...found.filter((row) => !this.#newer.has(row.database_id)), ...newer]
      this.#known = new Map(rows.map((row) => [row.database_id, row]))
      const gone = [...before.keys()].filter((databaseId) => !this.#known.has(databaseId))
      const changed = rows.filter((row) => !isSame(row, before.get(row.database_id)))
      await this.#follower([...gone, ...changed.map((row) => row.database_id)])
    } catch (error) {
      logger.warn('databases_homes_not_read', { error })
    }
  }

  #sweepLater(): void {
    if (this.#isStopped) return
    this.#timer = this.#deps.clock.after(SWEEP_EVERY_MS, () => {
      void Promise.all([this.#greet(), this.#sweep()]).finally(() => this.#sweepLater())
    })
  }

  /** Sends the address of this node to nodes that it has not met yet. Never rejects. */
  async #greet(): Promise<void> {
    const { cluster } = this.#deps
    const strangers = cluster.peers.filter(({ incarnation }) => !this.#neighbours.has(incarnation))
    const answers = await Promise.all(strangers.map(({ incarnation }) => cluster.ask(HELLO, this.#own, incarnation)))
    for (const { peer, answer } of answers.flat()) await this.#meet(answer, peer.incarnation)
  }

  async #greeted(payload: unknown, from: Incarnation): Promise<Neighbour> {
    await this.#meet(payload, from)
    return this.#own
  }

  async #meet(payload: unknown, incarnation: Incarnation): Promise<void> {
    const [node, host, network] = ['node', 'host', 'network'].map((name) => textOf(payload, name))
    if (node === undefined || host === undefined || network === undefined) return
    for (const [other, known] of this.#neighbours) {
      if (known.node === node && other < incarnation) this.#neighbours.delete(other)
    }
    this.#neighbours.set(incarnation, { node, host, network })
    await this.#follower([...this.#known.keys()])
  }

  #listensFor({ home, database_id }: homes.HomePort): boolean {
    const rivals = [...this.#neighbours.values()].filter((other) => collides(this.#own, other)).map(({ node }) => node)
    if (rivals.length === 0) return true
    if (rivals.includes(home)) return false
    const rank = (node: string): string => createHash('sha256').update(`${database_id} ${node}`).digest('hex')
    const own = rank(this.#deps.node)
    return rivals.every((node) => rank(node) < own)
  }
}

/**
 * The read regions of a row; none if the row is damaged. Its home still answers, and one damaged row must not block the
 * ports of other databases.
 */
function regionsOf(row: homes.HomePort): readonly string[] {
  try {
    return readRegionsOf(row)
  } catch {
    return []
  }
}

const isSame = (one: homes.HomePort, other: homes.HomePort | undefined): boolean =>
  one.home === other?.home && one.port === other.port && one.tls === other.tls

function textOf(payload: unknown, name: string): string | undefined {
  const value = isObject(payload) ? payload[name] : undefined
  return typeof value === 'string' ? value : undefined
}

function textsOf(payload: unknown, name: string): string[] {
  const value = isObject(payload) ? payload[name] : undefined
  return Array.isArray(value) ? value.slice(0, MAX_CHANGED).filter((text) => typeof text === 'string') : []
}
