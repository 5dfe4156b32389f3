import { auditRow } from '../../accounts/index.js'
import { isError } from '../../contract/errors/errors.js'
import { dataBoundOf, planOf } from '../desired-engine.js'
import type { DatabaseRow } from '../life.js'
import * as standbys from '../transactions/standbys.js'
import { systemCaller } from '../usage/index.js'
import type { StandbysDeps } from './deps.js'

type PlacedStandby = standbys.PlacedStandby

/** A node that is back within this time keeps its standbys, so that a restart does not have them copied elsewhere. */
const AWAY_MS = 30_000
/** Copies that begin at a time: each one costs the home a snapshot and the link its size. */
const MOST_COPIES = 2
/** When no node could be chosen. */
const RETRY_MS = 5_000

/** Chooses the nodes of standbys that the operator has left to the home of each database. */
export class Choice {
  readonly #deps: StandbysDeps
  /** Since when the node of each standby has been away, monotonic. */
  #awaySinceMs: ReadonlyMap<string, number> = new Map()
  /** When a node was last looked for, monotonic. */
  readonly #triedMs = new Map<string, number>()
  #choosing: Promise<void> | undefined

  constructor(deps: StandbysDeps) {
    this.#deps = deps
  }

  async stop(): Promise<void> {
    await this.#choosing
  }

  /** Chooses what is to be chosen, without waiting for it. */
  consider(rows: readonly PlacedStandby[]): void {
    const { node, directory } = this.#deps
    const own = rows.filter((row) => row.home === node && row.placement === 'auto' && directory.has(row.database_id))
    this.#noteAway(own)
    for (const id of this.#triedMs.keys()) if (!own.some((row) => row.database_id === id)) this.#triedMs.delete(id)
    if (this.#choosing) return
    const copying = own.filter((row) => this.#isCopying(row)).length
    const due = own.filter((row) => this.#isDue(row)).slice(0, Math.max(0, MOST_COPIES - copying))
    if (due.length > 0) this.#choosing = this.#chooseAll(due).finally(() => (this.#choosing = undefined))
  }

  #noteAway(own: readonly PlacedStandby[]): void {
    const nowMs = performance.now()
    const away = own.filter(({ node, node_life }) => node !== this.#deps.node && !isRunning(node_life))
    this.#awaySinceMs = new Map(away.map(({ database_id: id }) => [id, this.#awaySinceMs.get(id) ?? nowMs]))
  }

  #isCopying({ database_id: databaseId, node, state }: PlacedStandby): boolean {
    const isOpen = state === 'asked' || state === 'copying'
    return (
      isOpen && node !== this.#deps.node && this.#deps.sleep.isAwake(databaseId) && !this.#awaySinceMs.has(databaseId)
    )
  }

  #isDue({ database_id: databaseId, node, node_life }: PlacedStandby): boolean {
    const nowMs = performance.now()
    if (nowMs - (this.#triedMs.get(databaseId) ?? Number.NEGATIVE_INFINITY) < RETRY_MS) return false
    if (node === this.#deps.node || node_life === 'draining') return true
    return nowMs - (this.#awaySinceMs.get(databaseId) ?? nowMs) >= AWAY_MS
  }

  /** Never rejects. */
  async #chooseAll(due: readonly PlacedStandby[]): Promise<void> {
    for (const row of due) {
      this.#triedMs.set(row.database_id, performance.now())
      await this.#choose(row).catch((error: unknown) => {
        this.#deps.logger.warn('database_standby_failed', { databaseId: row.database_id, error })
      })
    }
  }

  async #choose({ database_id: databaseId, node: from }: PlacedStandby): Promise<void> {
    const { directory, store, clock, node: home } = this.#deps
    const row = directory.rowOf(databaseId)
    const node = row && (await this.#nodeFor(row))
    if (!row || node === undefined || node === from) return
    const at = clock.now()
    const event = { action: 'Set Database Standby', entity: databaseId, details: { node } } as const
    const audit = auditRow(systemCaller(row.account_id), event, at)
    await store.run(standbys.choose, { databaseId, home, from, node, at, audit })
  }

  /** A live node of the region of the database, chosen as for a new one. Undefined when there is no other. */
  async #nodeFor(row: DatabaseRow): Promise<string | undefined> {
    const { placement, plans, node } = this.#deps
    const needs = { region: row.primary_region, memoryBytes: dataBoundOf(planOf(row, plans)), except: [node] }
    try {
      return await placement.homeFor(needs)
    } catch (error) {
      if (isError(error, 'no_node_in_region') || isError(error, 'region_without_capacity')) return undefined
      throw error
    }
  }
}

const isRunning = (life: string | null): boolean => life === 'live' || life === 'draining'
