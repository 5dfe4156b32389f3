import { movedReason } from '../../fleet/index.js'
import { engineSpecOf } from '../desired-engine.js'
import * as databases from '../transactions/databases.js'
import * as moves from '../transactions/moves.js'
import { Departure, MoveFailed, type Opening, untilStored } from './departure.js'
import { type MovesDeps, TOPICS } from './deps.js'
import type { StreamHead, StreamTarget } from './streams.js'

/** Moves databases away: the side of the home. What happens between `begin` and the changed home is in `departure.ts`. */
export class Source {
  readonly #deps: MovesDeps
  /** Moves whose target may open streams. */
  readonly #open = new Map<string, { readonly move: moves.MoveRow; readonly socketPath: string }>()
  #isStopped = false

  constructor(deps: MovesDeps) {
    this.#deps = deps
  }

  /** Begins no more moves, and gives up moves that have not switched. */
  stop(): void {
    this.#isStopped = true
    this.#open.clear()
  }

  /** Where a stream of the target leads; undefined: it is refused. */
  streamTargetOf({ moveId, databaseId, epoch, backupId }: StreamHead): StreamTarget | undefined {
    const open = this.#open.get(moveId)
    if (!open || open.move.database_id !== databaseId || open.move.epoch !== epoch) return undefined
    if (backupId === undefined) return { socketPath: open.socketPath }
    return /^[\w-]+$/.test(backupId)
      ? { file: this.#deps.files.path({ database_id: databaseId, backup_id: backupId }) }
      : undefined
  }

  /** Carries out a move that was asked for. Resolves to whether the target is the home now. Never rejects. */
  async run(move: moves.MoveRow): Promise<'switched' | 'not'> {
    const { store, sleep, logger } = this.#deps
    const { database_id: databaseId, move_id: moveId, target } = move
    const opening = this.#openingOf(move)
    try {
      if ((await store.run(moves.begin, { moveId, databaseId })) !== 'begun') return 'not'
      logger.info('database_move_begun', { databaseId, node: target })
      await sleep.during(databaseId, 'change', () => new Departure(this.#deps, move, opening).run())
      return 'switched'
    } catch (error) {
      const problem = error instanceof MoveFailed ? error.message : 'an error in the node that serves it: see its log'
      if (!this.#isStopped) logger.warn('database_move_failed', { databaseId, node: target, error })
      opening.close()
      await untilStored(this.#deps, opening, () => this.abort(move, problem)).catch(() => undefined)
      return 'not'
    } finally {
      opening.close()
    }
  }

  #openingOf(move: moves.MoveRow): Opening {
    const isStopped = (): boolean => this.#isStopped
    return {
      open: (socketPath) => void (isStopped() || this.#open.set(move.move_id, { move, socketPath })),
      close: () => void this.#open.delete(move.move_id),
      get isStopped() {
        return isStopped()
      },
    }
  }

  /** Ends a move that has not switched. The target deletes its copy when it is notified, or at its next look. */
  async abort({ move_id: moveId, database_id: databaseId }: moves.MoveRow, problem: string): Promise<void> {
    const { store, clock, cluster } = this.#deps
    await store.run(moves.abort, { moveId, databaseId, problem, at: clock.now() })
    void cluster.ask(TOPICS.look, {})
  }

  /**
   * Sets aside the files of a database that another node serves now, and ends the move. Only once: files that appear later
   * are a copy for a move back.
   */
  async leave(move: moves.MoveRow): Promise<void> {
    const { store, fleet, plans, directory, sleep, files, clock, logger, node } = this.#deps
    const { database_id: databaseId, move_id: moveId, target } = move
    if ((await store.run(moves.find, { moveId }))?.state !== 'switched') return
    const row = await store.run(databases.find, { databaseId })
    if (row?.home !== node) {
      directory.remove(databaseId)
      sleep.forget(databaseId)
      await fleet.suspend(databaseId)
      if (row) await fleet.quarantineData(engineSpecOf(row, plans), movedReason(target))
      await fleet.remove(databaseId)
      await files.removeAll(databaseId)
      logger.info('database_moved', { databaseId, node: target })
    }
    await store.run(moves.settle, { moveId, at: clock.now() })
  }
}
