/** Which node serves which database, and what this node knows of databases that other nodes serve. */
import { type Clock, isObject } from '../base/index.js'
import type { Cluster, Peer } from '../cluster/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Addressed, Caller, RemoteNode } from '../http/index.js'
import type { Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import { type DatabaseRow, PAGE_ROWS } from './lifecycle.js'
import { Locator } from './locator.js'
import { PortsElsewhere } from './ports-elsewhere.js'
import type { RecordSettings } from './record.js'
import type { KnownDatabase } from './summaries.js'
import * as databases from './transactions/databases.js'
import * as homes from './transactions/homes.js'
import * as lostHomes from './transactions/lost-homes.js'
import type { Usage } from './usage/index.js'

/** Where clients reach the databases of a node. */
export type Addresses = Pick<RecordSettings, 'publicRedisHost' | 'publicRestUrl' | 'redisDomain' | 'redisDomainPort'>

/** What a node tells others about a database that it serves. */
export interface HomeFacts {
  readonly isAwake: boolean
  readonly monthRequests: number
  readonly usedBytes: number
  /** Billionths of a US dollar. */
  readonly monthCostNano: number
}

/** What `Homes` is built from. */
export interface HomesDeps {
  readonly store: Store
  /** The name of this node; absent on a server that is alone. */
  readonly node: string | undefined
  readonly cluster: Pick<Cluster, 'ask' | 'handle' | 'tunnel' | 'peers' | 'onNodeGone'> | undefined
  /** The address that this node listens on. */
  readonly host: string | undefined
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  readonly addresses: Addresses
  /** Whether this node serves a database with a token that has this digest. */
  readonly servesToken: (digest: string) => boolean
  /** The databases of an account that this node serves. */
  readonly served: (accountId: string) => readonly (readonly [databaseId: string, facts: HomeFacts])[]
  /** Begins to delete a database of an account. Never rejects. */
  readonly remove: (accountId: string, databaseId: string) => Promise<void>
}

const FACTS = 'databases.facts'
const REMOVE = 'databases.remove'

/** The nodes that serve databases. On a server that is alone, everything is here. */
export class Homes {
  readonly #deps: HomesDeps
  /** Finds the home of the database that a client of the data plane asks for; absent on a server that is alone. */
  readonly locator: Locator | undefined
  /** The ports of databases of other nodes; absent on a server that is alone. */
  readonly ports: PortsElsewhere | undefined
  /** The last known addresses of each node, for lists while it is away. */
  readonly #addresses = new Map<string, Addresses>()

  constructor(deps: HomesDeps) {
    this.#deps = deps
    const { cluster, node, host = '', addresses, served, remove } = deps
    this.ports = cluster && node !== undefined ? new PortsElsewhere({ ...deps, cluster, node, host }) : undefined
    this.locator =
      cluster && node !== undefined
        ? new Locator({ ...deps, cluster, node, domain: addresses.redisDomain, nowMs: () => performance.now() })
        : undefined
    cluster?.handle(FACTS, (payload) => ({
      addresses,
      databases: served(textOf(payload, 'accountId')).map(([id, facts]) => [id, facts]),
    }))
    cluster?.handle(REMOVE, (payload) => {
      // Not awaited: a deletion may take longer than an answer may. The other node checks again later.
      void remove(textOf(payload, 'accountId'), textOf(payload, 'databaseId'))
    })
  }

  /** Lookups of the data plane about databases of other nodes. */
  get otherNodes() {
    const { locator, ports } = this
    return (
      locator && {
        byToken: (token: string) => locator.byToken(token),
        movedTo: (token: string) => locator.movedTo(token),
        whileMoving: (token: string) => locator.whileMoving(token),
        byServerName: (serverName: string) => locator.byServerName(serverName),
        ports,
      }
    )
  }

  /**
   * Notifies the other nodes that databases begin to serve, serve no more, or have another home or port; see
   * `PortsElsewhere`. Never rejects: the change is committed.
   */
  async announce(databaseIds: readonly string[]): Promise<void> {
    await this.ports?.announce(databaseIds)
  }

  /** Whether other nodes may serve databases. */
  get hasOtherNodes(): boolean {
    return this.#deps.node !== undefined
  }

  /** Whether this node serves a database. */
  isHere({ home }: Pick<DatabaseRow, 'home'>): boolean {
    return this.#deps.node === undefined || home === this.#deps.node
  }

  /**
   * Adopts databases that a server made when it was alone, if their data is here.
   * @param onDisk the databases with data in this data directory.
   * @returns all rows, as they are now.
   */
  async adopt(rows: readonly DatabaseRow[], onDisk: readonly string[]): Promise<readonly DatabaseRow[]> {
    const { node, store } = this.#deps
    if (node === undefined) return rows
    const here = new Set(onDisk)
    const adopted: DatabaseRow[] = []
    for (const row of rows) {
      const isMine = row.home === null && here.has(row.database_id)
      const isAdopted = isMine && (await store.run(homes.adopt, { databaseId: row.database_id, home: node }))
      adopted.push(isAdopted ? { ...row, home: node } : row)
    }
    return adopted
  }

  /**
   * The node that answers a request about a database; `undefined`: this one, also when the account does not have it.
   * @throws HomeportError `database_without_home` when no node serves it.
   */
  async elsewhere(request: Addressed): Promise<RemoteNode | undefined> {
    return this.elsewhereOf(await this.known(request))
  }

  /** Like `elsewhere`, for the deletion of a database. Any node deletes a database whose home the operator has given up. */
  async elsewhereToDelete(request: Addressed): Promise<RemoteNode | undefined> {
    const found = await this.known(request)
    const isLost = found?.home && (await this.#deps.store.run(lostHomes.isLost, { home: found.home }))
    return isLost ? undefined : this.elsewhereOf(found)
  }

  /** Like `elsewhere`, for a database that was found already. */
  elsewhereOf(found: homes.FoundHome | undefined): RemoteNode | undefined {
    if (!found || found.home === this.#deps.node) return undefined
    if (found.home === null) throw new HomeportError('database_without_home', { databaseId: found.databaseId })
    return this.at(found.home)
  }

  /** The database that a request is about, if the account has it: by its id, or by the idempotency key of its creation. */
  async known(request: Addressed): Promise<homes.FoundHome | undefined> {
    const { node, store } = this.#deps
    const { accountId } = request.caller
    const key = keyOf(request)
    const databaseId = databaseIdOf(request)
    if (node === undefined) return undefined
    if (databaseId !== undefined) return store.run(homes.find, { accountId, databaseId })
    return key === undefined ? undefined : store.run(homes.findByKey, { accountId, key })
  }

  /** The node that a recovery asks for; `undefined`: this one. */
  named({ body }: Addressed): RemoteNode | undefined {
    const name = isObject(body) && typeof body.node === 'string' ? body.node : undefined
    return name === undefined || name === this.#deps.node ? undefined : this.at(name)
  }

  /** The management API of another node. */
  at(node: string): RemoteNode {
    const connect = (ip: string) => {
      const { cluster } = this.#deps
      return cluster ? cluster.tunnel(node, 'management', ip) : Promise.reject(new Error('no cluster'))
    }
    return { node, connect }
  }

  /**
   * Asks the home of a database to delete it. @throws HomeportError `database_busy` always, because the deletion takes
   * time.
   */
  async removeElsewhere({ accountId }: Caller, row: Pick<DatabaseRow, 'database_id' | 'home'>): Promise<never> {
    const { cluster } = this.#deps
    const peer = cluster?.peers.find(({ name }) => name === row.home)
    if (peer) await cluster?.ask(REMOVE, { accountId, databaseId: row.database_id }, peer.incarnation)
    throw new HomeportError('database_busy', { modifyingState: 'deleting' })
  }

  /** What other nodes know of an account's databases. Nodes that do not answer at once are left out. */
  async others(accountId: string): Promise<OtherNodes> {
    const facts = new Map<string, HomeFacts>()
    for (const { peer, answer } of (await this.#deps.cluster?.ask(FACTS, { accountId })) ?? []) {
      this.#note(peer, answer, facts)
    }
    return { facts, addresses: this.#addresses }
  }

  /** A database of an account that another node serves; `undefined` for any other. */
  async rowElsewhere(accountId: string, databaseId: string): Promise<DatabaseRow | undefined> {
    if (!this.hasOtherNodes) return undefined
    const row = await this.#deps.store.run(databases.get, { accountId, databaseId })
    return row && !this.isHere(row) ? row : undefined
  }

  /** The databases of an account that other nodes serve, and whether they say that one is awake. */
  async everyElsewhere(accountId: string): Promise<{ known: KnownDatabase[]; isAwake: (id: string) => boolean }> {
    const known: KnownDatabase[] = []
    if (!this.hasOtherNodes) return { known, isAwake: () => false }
    const others = await this.others(accountId)
    let after: databases.ListPlace | undefined
    do {
      const rows = await this.#deps.store.run(databases.list, { accountId, after, limit: PAGE_ROWS })
      for (const row of rows) if (!this.isHere(row)) known.push(knownElsewhere(row, others))
      after = rows.length < PAGE_ROWS ? undefined : databases.placeOf(rows.at(-1))
    } while (after)
    return { known, isAwake: (id) => others.facts.get(id)?.isAwake === true }
  }

  #note({ name }: Peer, answer: unknown, facts: Map<string, HomeFacts>): void {
    if (!isObject(answer)) return
    const addresses = addressesOf(answer.addresses)
    if (addresses) this.#addresses.set(name, addresses)
    for (const entry of Array.isArray(answer.databases) ? answer.databases : []) {
      if (!Array.isArray(entry) || !isObject(entry[1])) continue
      const { isAwake, monthRequests, usedBytes, monthCostNano } = entry[1]
      const use = { monthRequests: numberOf(monthRequests), usedBytes: numberOf(usedBytes) }
      facts.set(String(entry[0]), { isAwake: isAwake === true, ...use, monthCostNano: numberOf(monthCostNano) })
    }
  }
}

/** 0 for a number that a node of an older version does not send. */
const numberOf = (value: unknown): number => Number(value ?? 0)

/** What is known of the databases that other nodes serve. */
export interface OtherNodes {
  readonly facts: ReadonlyMap<string, HomeFacts>
  readonly addresses: ReadonlyMap<string, Addresses>
}

/** What this node tells others about the databases of an account that it serves. */
export function factsHere(
  accountId: string,
  { ledgers, nowMs }: Pick<Usage, 'ledgers' | 'nowMs'>,
  isAwake: (databaseId: string) => boolean,
): readonly (readonly [databaseId: string, facts: HomeFacts])[] {
  const own = ledgers.filter(({ row }) => row.account_id === accountId)
  return own.map((ledger) => {
    const { row, usedBytes } = ledger
    const use = { usedBytes, monthRequests: ledger.monthRequests(nowMs), monthCostNano: ledger.monthCostNano(nowMs) }
    return [row.database_id, { isAwake: isAwake(row.database_id), ...use }] as const
  })
}

/** A database of another node, as lists show it. */
function knownElsewhere(row: DatabaseRow, { facts }: OtherNodes): KnownDatabase {
  const known = facts.get(row.database_id)
  if (!known) return { row }
  const { monthRequests, usedBytes, monthCostNano } = known
  return { row, monthRequests: () => monthRequests, monthCostNano: () => monthCostNano, usedBytes }
}

/**
 * The settings for the record of a database of another node: the addresses of that node, and whether the database is awake.
 */
export function settingsElsewhere(row: DatabaseRow, own: RecordSettings, others: OtherNodes): RecordSettings {
  const isAwake = (id: string): boolean => others.facts.get(id)?.isAwake === true
  return { ...own, ...others.addresses.get(row.home ?? ''), isAwake }
}

function textOf(payload: unknown, name: string): string {
  const value = isObject(payload) ? payload[name] : undefined
  if (typeof value !== 'string') throw new Error(`a message of another node has no ${name}`)
  return value
}

function addressesOf(value: unknown): Addresses | undefined {
  if (!isObject(value)) return undefined
  const { publicRedisHost, publicRestUrl, redisDomain, redisDomainPort } = value
  if (typeof publicRedisHost !== 'string' || typeof publicRestUrl !== 'string') return undefined
  const domain = typeof redisDomain === 'string' ? redisDomain : undefined
  return { publicRedisHost, publicRestUrl, redisDomain: domain, redisDomainPort: Number(redisDomainPort) }
}

/** The database of a request: in its path, or in its body for the one operation that has it there. */
function databaseIdOf({ params, body }: Addressed): string | undefined {
  const id = isObject(params) && params.id !== undefined ? params.id : isObject(body) ? body.database_id : undefined
  return typeof id === 'string' ? id : undefined
}

function keyOf({ headers }: Addressed): string | undefined {
  const key = headers['idempotency-key']
  return typeof key === 'string' && key !== '' ? key : undefined
}
