import { auditRow } from '../../accounts/index.js'
import { newId } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import { dataBoundOf, planOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import * as moves from '../transactions/moves.js'
import * as standbys from '../transactions/standbys.js'
import { systemCaller } from '../usage/index.js'
import type { MovesDeps } from './deps.js'

/** A database that could not be moved is tried again after this time. */
const RETRY_AFTER_MS = 30_000

/**
 * Errors that concern one database only: it was changed, or the chosen node has left. For some, an operator has to remove a
 * standby.
 */
const ERRORS_OF_ONE_DATABASE = [
  'database_standby_there',
  'database_busy',
  'database_is_there',
  'database_not_found',
  'node_not_found',
  'node_not_running',
] as const

/** Ignores the error that no node can be chosen; throws any other. */
function ignoreNone(error: unknown): undefined {
  if (!isError(error, 'no_node_in_region') && !isError(error, 'region_without_capacity')) throw error
}

/** Moves databases away from this node while the operator drains it. */
export class Drain {
  readonly #deps: MovesDeps
  readonly #parallel: number
  /** When each database was asked to move, monotonic. */
  readonly #askedMs = new Map<string, number>()

  constructor(deps: MovesDeps, parallel: number) {
    this.#deps = deps
    this.#parallel = parallel
  }

  /**
   * Asks for the next moves, as many as may run at a time. Resolves to whether it asked for any.
   * @param open the open moves of this node.
   */
  async requestMoves(open: readonly moves.MoveRow[]): Promise<boolean> {
    const { node, store, clock, directory, logger } = this.#deps
    const active = open.filter(({ source, state }) => source === node && (state === 'asked' || state === 'copying'))
    // A move that has ended does not block the next one: the node that has to clean up after it may be away for good.
    const isFree = ({ databaseId }: { databaseId: string }): boolean =>
      !active.some(({ database_id }) => database_id === databaseId) && this.#isDue(databaseId)
    const next = this.#inOrder()
      .filter(isFree)
      .slice(0, Math.max(0, this.#parallel - active.length))
    for (const { databaseId } of next) {
      const row = directory.rowOf(databaseId)
      this.#askedMs.set(databaseId, performance.now())
      const target = row && (await this.#targetFor(row))
      if (!row || target === undefined) continue
      const at = clock.now()
      const event = { action: 'Move Database to Node', entity: databaseId, details: { node: target } } as const
      const audit = auditRow(systemCaller(row.account_id), event, at)
      await store
        .run(moves.ask, { moveId: newId('mov_', at), databaseId, target, at, audit })
        .catch((error: unknown) => {
          if (!ERRORS_OF_ONE_DATABASE.some((code) => isError(error, code))) throw error
          logger.warn('database_move_failed', { databaseId, node: target, error })
        })
    }
    return next.length > 0
  }

  #isDue(databaseId: string): boolean {
    const askedMs = this.#askedMs.get(databaseId)
    return askedMs === undefined || performance.now() - askedMs > RETRY_AFTER_MS
  }

  /** The databases of this node in the order in which they move: those asleep first, then the longest idle. */
  #inOrder(): readonly { readonly databaseId: string }[] {
    const { directory, sleep, traffic } = this.#deps
    const all = directory.list().map(({ databaseId }) => ({
      databaseId,
      isAwake: sleep.isAwake(databaseId),
      usedAtMs: traffic.meterOf(databaseId)?.lastActivityAtMs ?? 0,
    }))
    return all.sort((one, other) => Number(one.isAwake) - Number(other.isAwake) || one.usedAtMs - other.usedAtMs)
  }

  /** A live node of the region of a database, chosen as for a new one. Undefined when there is none: the database stays. */
  async #targetFor(row: DatabaseRow): Promise<string | undefined> {
    const { placement, plans, logger, node, store } = this.#deps
    const needs = { region: row.primary_region, memoryBytes: dataBoundOf(planOf(row, plans)) }
    const copies = await store.run(standbys.nodesOf, { databaseId: row.database_id })
    try {
      if (copies.length === 0) return await placement.homeFor(needs)
      // Prefers a node without a standby of the database, so that the standbys stay where they are.
      const apart = await placement.homeFor({ ...needs, except: copies }).catch(ignoreNone)
      return apart ?? (await placement.homeFor(needs))
    } catch (error) {
      ignoreNone(error)
      logger.warn('database_move_failed', { databaseId: row.database_id, node, error })
      return undefined
    }
  }
}
