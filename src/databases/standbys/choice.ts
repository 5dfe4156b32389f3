import { auditRow } from '../../accounts/index.js'
import { isError } from '../../contract/errors/errors.js'
import { dataBoundOf, planOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import * as standbys from '../transactions/standbys.js'
import { systemCaller } from '../usage/index.js'
import type { StandbysDeps } from './deps.js'

type PlacedStandby = standbys.PlacedStandby

/** A node that is back within this time keeps its standbys, so that a restart causes no copies at other nodes. */
const AWAY_MS = 30_000
/** Maximum copies that begin at a time: each costs the home a snapshot, and the link the transfer of the data. */
const MAX_COPIES = 2
/** Delay before the next attempt when no node could be chosen. */
const RETRY_MS = 5_000

/** Chooses the nodes of standbys that the operator has left to the home of each database. */
export class Choice {
  readonly #deps: StandbysDeps
  /** Since when the node of each standby has been away, monotonic; by `keyOf`. */
  #awaySinceMs: ReadonlyMap<string, number> = new Map()
  /** When a node was last looked for, monotonic; by `keyOf`. */
  readonly #triedMs = new Map<string, number>()
  #choosing: Promise<void> | undefined

  constructor(deps: StandbysDeps) {
    this.#deps = deps
  }

  async stop(): Promise<void> {
    await this.#choosing
  }

  /** Begins to choose nodes for the standbys that need one, without waiting for the result. */
  consider(rows: readonly PlacedStandby[]): void {
    const { node, directory } = this.#deps
    const own = rows.filter((row) => row.home === node && row.placement === 'auto' && directory.has(row.database_id))
    this.#noteAway(own)
    for (const key of this.#triedMs.keys()) if (!own.some((row) => keyOf(row) === key)) this.#triedMs.delete(key)
    if (this.#choosing) return
    const copying = own.filter((row) => this.#isCopying(row)).length
    const due = own.filter((row) => this.#isDue(row)).slice(0, Math.max(0, MAX_COPIES - copying))
    if (due.length > 0) this.#choosing = this.#chooseAll(due, rows).finally(() => (this.#choosing = undefined))
  }

  #noteAway(own: readonly PlacedStandby[]): void {
    const nowMs = performance.now()
    const away = own.filter(({ node, node_state }) => node !== this.#deps.node && !isRunning(node_state))
    this.#awaySinceMs = new Map(away.map(keyOf).map((key) => [key, this.#awaySinceMs.get(key) ?? nowMs]))
  }

  #isCopying(row: PlacedStandby): boolean {
    const isOpen = row.state === 'asked' || row.state === 'copying'
    const isPlaced = row.node !== this.#deps.node
    return isOpen && isPlaced && this.#deps.sleep.isAwake(row.database_id) && !this.#awaySinceMs.has(keyOf(row))
  }

  #isDue(row: PlacedStandby): boolean {
    const { node, node_state } = row
    const nowMs = performance.now()
    if (nowMs - (this.#triedMs.get(keyOf(row)) ?? Number.NEGATIVE_INFINITY) < RETRY_MS) return false
    if (node === this.#deps.node || node_state === 'draining') return true
    return nowMs - (this.#awaySinceMs.get(keyOf(row)) ?? nowMs) >= AWAY_MS
  }

  /** Chooses one after the other, so that two standbys of a database do not get the same node. Never rejects. */
  async #chooseAll(due: readonly PlacedStandby[], rows: readonly PlacedStandby[]): Promise<void> {
    const taken = new Map(rows.map((row) => [keyOf(row), row]))
    for (const row of due) {
      this.#triedMs.set(keyOf(row), performance.now())
      const others = [...taken.values()].filter((one) => one.database_id === row.database_id).map(({ node }) => node)
      try {
        const node = await this.#choose(row, others)
        if (node !== undefined) taken.set(keyOf(row), { ...row, node })
      } catch (error) {
        this.#deps.logger.warn('database_standby_failed', { databaseId: row.database_id, error })
      }
    }
  }

  /** Resolves to the node that was chosen. @param others nodes that keep a copy of the database. */
  async #choose(row: PlacedStandby, others: readonly string[]): Promise<string | undefined> {
    const { directory, store, clock, node: home } = this.#deps
    const { database_id: databaseId, slot, node: from } = row
    const database = directory.rowOf(databaseId)
    const node = database && (await this.#nodeFor(database, others))
    if (!database || node === undefined) return undefined
    const at = clock.now()
    const event = { action: 'Set Database Standby', entity: databaseId, details: { node } } as const
    const audit = auditRow(systemCaller(database.account_id), event, at)
    const isChosen = await store.run(standbys.choose, { databaseId, slot, home, from, node, at, audit })
    return isChosen ? node : undefined
  }

  /** A live node of the region of the database, chosen as for a new one. Undefined when there is no other. */
  async #nodeFor(row: DatabaseRow, others: readonly string[]): Promise<string | undefined> {
    const { placement, plans, node } = this.#deps
    const memoryBytes = dataBoundOf(planOf(row, plans))
    const needs = { region: row.primary_region, memoryBytes, except: [node, ...others] }
    try {
      return await placement.homeFor(needs)
    } catch (error) {
      if (isError(error, 'no_node_in_region') || isError(error, 'region_without_capacity')) return undefined
      throw error
    }
  }
}

const keyOf = ({ database_id, slot }: PlacedStandby): string => `${database_id}/${slot}`

const isRunning = (state: string | null): boolean => state === 'live' || state === 'draining'
