/** Which node a new database gets as its home. */
import { isObject } from '../base/index.js'
import type { Cluster, Incarnation } from '../cluster/index.js'
import type { PlanTable } from '../contract/databases/plans.js'
import { isPrimaryRegion, PRIMARY_REGIONS, type Region } from '../contract/databases/regions.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Addressed, RemoteNode } from '../http/index.js'
import type { Store } from '../store/index.js'
import { dataBoundOf } from './desired-engine.js'
import type { Homes } from './homes.js'
import { type CreationRequest, readCreation } from './older-spelling.js'
import * as homes from './transactions/homes.js'

/** What a node reports of itself when another node looks for a home. */
export interface Capacity {
  /** The region that it serves; undefined: all. */
  readonly region: string | undefined
  /** Whether its disk has space. */
  readonly hasSpace: boolean
  /** Databases that are awake, and how many may be at a time. */
  readonly awake: number
  readonly mostAwake: number
  readonly databases: number
  /** What the plans of its awake databases allow them, bytes of memory. */
  readonly promisedBytes: number
  /** Memory of the data of its awake databases, bytes. */
  readonly engineBytes: number
  /** Memory of its machine, and how much of that is available, bytes. */
  readonly memoryBytes: number
  readonly availableBytes: number
  /** Whether it keeps replicas of other nodes; older versions do not say so. */
  readonly keepsReplicas?: boolean
}

/** A node that may become a home. */
export interface Candidate {
  readonly node: string
  readonly capacity: Capacity
}

/** What a new database needs. */
export interface Needs {
  readonly region: string
  /** What its plan allows it, bytes of memory. */
  readonly memoryBytes: number
  /** Nodes that must not be chosen, by name. */
  readonly except?: readonly string[]
  /** The role of the node. Default: the home. */
  readonly role?: 'home' | 'replica'
}

/** What a placement is built from. */
export interface PlacementDeps {
  readonly store: Pick<Store, 'run'>
  /** The name of this node; absent on a server that is alone. */
  readonly node: string | undefined
  readonly cluster: Pick<Cluster, 'ask' | 'handle' | 'peers' | 'takesPart' | 'isDraining'> | undefined
  readonly homes: Pick<Homes, 'known' | 'elsewhereOf' | 'at'>
  readonly plans: PlanTable
  readonly ownCapacity: () => Promise<Capacity>
  /** A number from 0 up to 1. Default: `Math.random`. */
  readonly random?: () => number
}

const CAPACITY = 'databases.capacity'

/** Chooses homes by region and capacity. On a server that is alone, every region is here. */
export class Placement {
  readonly #deps: PlacementDeps

  constructor(deps: PlacementDeps) {
    this.#deps = deps
    const { cluster, ownCapacity } = deps
    // A node that answers may be chosen and gets creations. So this node answers only while it serves, not before and not
    // while it stops.
    cluster?.handle(CAPACITY, () => (cluster.takesPart ? ownCapacity() : undefined))
  }

  /**
   * The node that answers a creation, if it is another one: the home of the database that an earlier request with the same
   * key has created, or the home that is chosen now. A request that another node passed on is answered here.
   * @throws HomeportError `database_without_home`, and those of `homeFor`
   */
  async elsewhere(request: Addressed): Promise<RemoteNode | undefined> {
    const { node, homes, plans } = this.#deps
    if (node === undefined || request.isForwarded) return undefined
    const known = await homes.known(request)
    if (known) return homes.elsewhereOf(known)
    const creation = creationOf(request.body)
    if (!creation) return undefined
    const plan = creation.plan ?? (request.caller.accountType === 'free' ? 'free' : 'payg')
    const needs = { region: creation.primary_region, memoryBytes: dataBoundOf(plans[plan]) }
    const home = await this.homeFor(needs)
    return home === undefined || home === node ? undefined : homes.at(home)
  }

  /**
   * The node that is to create a database.
   * @throws HomeportError `no_node_in_region`, `region_without_capacity`
   */
  async homeFor(needs: Needs): Promise<string | undefined> {
    const { node, cluster, random = Math.random } = this.#deps
    if (node === undefined || !cluster) return undefined
    const capacities = await this.capacities()
    const excluded = new Set(needs.except)
    for (const { name, state } of cluster.peers) if (state === 'draining') excluded.add(name)
    if (cluster.isDraining) excluded.add(node)
    const free = [...capacities]
      .map(([name, capacity]) => ({ node: name, capacity }))
      .filter((one) => !excluded.has(one.node) && (needs.role !== 'replica' || one.capacity.keepsReplicas === true))
    const found = chooseHome(free, needs, random)
    if (found !== undefined) return found
    await this.checkRegions([needs.region])
    throw new HomeportError('region_without_capacity', { region: needs.region })
  }

  /** The capacity that each node reports, this one first. Nodes that do not answer at once are left out. */
  async capacities(): Promise<ReadonlyMap<string, Capacity>> {
    const { node, cluster, ownCapacity } = this.#deps
    const capacities = new Map<string, Capacity>()
    if (node === undefined || !cluster) return capacities
    const [own, answers] = await Promise.all([ownCapacity(), cluster.ask(CAPACITY, null)])
    capacities.set(node, own)
    for (const { peer, answer } of answers) {
      const capacity = capacityOf(answer)
      if (capacity) capacities.set(peer.name, capacity)
    }
    return capacities
  }

  /** The region of each other node that answers, by its incarnation; undefined: it serves all regions. */
  async regionsOfPeers(): Promise<ReadonlyMap<Incarnation, string | undefined>> {
    const answers = (await this.#deps.cluster?.ask(CAPACITY, null)) ?? []
    const known = answers.map(({ peer, answer }) => ({ peer, capacity: capacityOf(answer) }))
    return new Map(known.flatMap(({ peer, capacity }) => (capacity ? [[peer.incarnation, capacity.region]] : [])))
  }

  /** The regions that have a node; undefined: all have one. */
  async regions(): Promise<readonly Region[] | undefined> {
    const { node, store } = this.#deps
    if (node === undefined) return undefined
    const served = await store.run(homes.regionsOfNodes, {})
    if (served.includes(null)) return undefined
    return PRIMARY_REGIONS.filter((region) => served.includes(region))
  }

  /** @throws HomeportError `no_node_in_region` for the first region without a node. */
  async checkRegions(wanted: readonly string[]): Promise<void> {
    if (wanted.length === 0) return
    const regions = await this.regions()
    const missing = regions && wanted.find((region) => isPrimaryRegion(region) && !regions.includes(region))
    if (regions && missing !== undefined) throw new HomeportError('no_node_in_region', { region: missing, regions })
  }
}

/** Undefined for an invalid request: its handler on this node reports what is wrong. */
function creationOf(body: unknown): CreationRequest | undefined {
  try {
    return readCreation(body)
  } catch (error) {
    if (error instanceof HomeportError) return undefined
    throw error
  }
}

/**
 * Chooses the emptier of two candidates drawn at random, so that nodes that create at the same time do not all choose the
 * same one. Draws from the first group that is not empty: nodes of only this region with capacity, all with capacity, all
 * with space on their disk, all that serve the region. A home without capacity reports what it lacks. Undefined when no
 * candidate serves the region. Pure.
 */
export function chooseHome(all: readonly Candidate[], needs: Needs, random: () => number): string | undefined {
  const serving = all.filter(({ capacity: { region } }) => region === undefined || region === needs.region)
  const capable = serving.filter(({ capacity }) => hasCapacity(capacity, needs))
  const own = capable.filter(({ capacity }) => capacity.region !== undefined)
  const spacious = serving.filter(({ capacity }) => capacity.hasSpace)
  const drawn = [own, capable, spacious, serving].find((tier) => tier.length > 0) ?? []
  const [one, other] = drawTwo(drawn, random)
  if (!one || !other) return one?.node
  return isEmptier(other.capacity, one.capacity) ? other.node : one.node
}

const hasCapacity = (capacity: Capacity, needs: Needs): boolean =>
  capacity.hasSpace && capacity.awake < capacity.mostAwake && capacity.availableBytes >= needs.memoryBytes

/** Draws two different candidates, in their order. */
function drawTwo(from: readonly Candidate[], random: () => number): readonly Candidate[] {
  if (from.length <= 2) return from
  const first = Math.floor(random() * from.length)
  const second = (first + 1 + Math.floor(random() * (from.length - 1))) % from.length
  return [first, second].sort((one, other) => one - other).flatMap((index) => from[index] ?? [])
}

/** Compares shares of the machines, because machines differ. */
function isEmptier(one: Capacity, other: Capacity): boolean {
  const shares = (capacity: Capacity): number[] => [
    capacity.promisedBytes / capacity.memoryBytes,
    capacity.databases / capacity.memoryBytes,
  ]
  const [promised = 0, held = 0] = shares(one)
  const [otherPromised = 0, otherHeld = 0] = shares(other)
  return promised === otherPromised ? held < otherHeld : promised < otherPromised
}

function capacityOf(answer: unknown): Capacity | undefined {
  if (!isObject(answer) || typeof answer.hasSpace !== 'boolean') return undefined
  const number = (name: string): number => (typeof answer[name] === 'number' ? answer[name] : 0)
  return {
    region: typeof answer.region === 'string' ? answer.region : undefined,
    hasSpace: answer.hasSpace,
    awake: number('awake'),
    mostAwake: number('mostAwake'),
    databases: number('databases'),
    promisedBytes: number('promisedBytes'),
    engineBytes: number('engineBytes'),
    memoryBytes: Math.max(1, number('memoryBytes')),
    availableBytes: number('availableBytes'),
    keepsReplicas: answer.keepsReplicas === true,
  }
}
