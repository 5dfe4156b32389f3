import { pause } from '../../base/index.js'
import type { Peer } from '../../cluster/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Replication, ReplicationPosition } from '../../fleet/index.js'
import { engineSpecOf } from '../desired-engine.js'
import * as moves from '../transactions/moves.js'
import { type MovesDeps, type Progress, progressOf, TOPICS } from './deps.js'
import type { StreamHead, Way } from './streams.js'

const POLL_MS = 100
/** Between two comparisons while clients wait. */
const CLOSE_POLL_MS = 5
/** A target that does not answer for this time is given up. */
const SILENT_FOR_MS = 10_000
/** Clients wait only when the copy is this close. */
const NEAR_BYTES = 1_000_000
/** Large commands that are on their way when a copy is near have this time to arrive whole, before commands begin to wait. */
const RECEIVED_WITHIN_MS = 10_000
/** Clients whose commands run for longer are disconnected. */
const RELEASE_WITHIN_MS = 1_000
const EQUAL_WITHIN_MS = 5_000
/** Far longer than a switch. An engine whose Homeport has died ends, so no pause outlives its reason. */
const PAUSE_MS = 3_600_000
const TAKEN_WITHIN_MS = 5_000
const RETRY_MS = 500
const KNOWN_WITHIN_MS = 3_000

/** Why a move was given up, for the operator. */
class MoveFailed extends Error {}

/** Moves databases away: the side of the home. */
export class Source {
  readonly #deps: MovesDeps
  /** Moves whose target may open streams. */
  readonly #open = new Map<string, { readonly move: moves.MoveRow; readonly socketPath: string }>()
  #isStopped = false

  constructor(deps: MovesDeps) {
    this.#deps = deps
  }

  /** Begins nothing more, and gives up what has not switched. */
  stop(): void {
    this.#isStopped = true
    this.#open.clear()
  }

  /** Where a stream of the target leads. */
  wayOf({ moveId, databaseId, epoch, backupId }: StreamHead): Way | undefined {
    const open = this.#open.get(moveId)
    if (!open || open.move.database_id !== databaseId || open.move.epoch !== epoch) return undefined
    if (backupId === undefined) return { socketPath: open.socketPath }
    return /^[\w-]+$/.test(backupId)
      ? { file: this.#deps.files.path({ database_id: databaseId, backup_id: backupId }) }
      : undefined
  }

  /** Carries a move out that was asked for. Answers whether the target is the home now. Never rejects. */
  async run(move: moves.MoveRow): Promise<'switched' | 'not'> {
    const { store, sleep, logger } = this.#deps
    const { database_id: databaseId, move_id: moveId, target } = move
    try {
      if ((await store.run(moves.begin, { moveId, databaseId })) !== 'begun') return 'not'
      logger.info('database_move_begun', { databaseId, node: target })
      await sleep.during(databaseId, 'change', () => this.#copy(move))
      return 'switched'
    } catch (error) {
      const problem = error instanceof MoveFailed ? error.message : 'an error in the node that serves it: see its log'
      if (!this.#isStopped) logger.warn('database_move_failed', { databaseId, node: target, error })
      await this.abort(move, problem).catch(() => undefined)
      return 'not'
    } finally {
      this.#open.delete(moveId)
    }
  }

  /** Ends a move that has not switched. The target deletes its copy when it hears so, or looks. */
  async abort({ move_id: moveId, database_id: databaseId }: moves.MoveRow, problem: string): Promise<void> {
    const { store, clock, cluster } = this.#deps
    await store.run(moves.abort, { moveId, databaseId, problem, at: clock.now() })
    void cluster.ask(TOPICS.look, {})
  }

  /**
   * Sets the files of a database aside that another node serves now, and ends the move. Once: what is there later is a copy
   * for a way back.
   */
  async leave(move: moves.MoveRow): Promise<void> {
    const { store, fleet, plans, directory, sleep, files, clock, logger, node } = this.#deps
    const { database_id: databaseId, move_id: moveId, target } = move
    if ((await store.run(moves.find, { moveId }))?.state !== 'switched') return
    const row = await store.run(moves.database, { databaseId })
    if (row?.home !== node) {
      directory.remove(databaseId)
      sleep.forget(databaseId)
      await fleet.suspend(databaseId)
      if (row) await fleet.quarantineData(engineSpecOf(row, plans), `The database has moved to the node ${target}.`)
      await fleet.remove(databaseId)
      await files.removeAll(databaseId)
      logger.info('database_moved', { databaseId, node: target })
    }
    await store.run(moves.settle, { moveId, at: clock.now() })
  }

  async #copy(move: moves.MoveRow): Promise<void> {
    const { sleep, fleet } = this.#deps
    const { database_id: databaseId, move_id: moveId, epoch } = move
    const peer = await this.#target(move)
    sleep.wake(databaseId)
    await fleet.endpoints(databaseId, undefined, 'while-loading')
    const replication = await fleet.replicationWith(databaseId)
    this.#open.set(moveId, { move, socketPath: replication.socketPath })
    const bytes = await fleet.usedBytes(databaseId)
    await this.#ask(peer, TOPICS.receive, { moveId, databaseId, epoch, password: replication.password, bytes })
    await this.#untilNear(move, peer, replication)
    await this.#switch(move, peer)
  }

  /** Clients wait while this runs; then the target serves them, or this node as before. */
  async #switch(move: moves.MoveRow, peer: Peer): Promise<void> {
    const { changes, directory, locator, clock, logger, traffic } = this.#deps
    const { database_id: databaseId, target } = move
    await this.#received(databaseId)
    const row = directory.rowOf(databaseId)
    if (!row) throw new MoveFailed('the database is gone')
    const beganMs = clock.now()
    const settled = locator.leaving(row)
    directory.hideTokens(databaseId)
    let isGone = false
    try {
      await changes.holding(databaseId, async () => {
        await this.#released(databaseId)
        await this.#change(move, peer)
        await this.#taken(move, peer)
        isGone = true
        locator.moved(target, row)
        // The commands that wait have reached no engine. An error in answer to them would end in applications; most clients
        // send them again when they are disconnected.
        traffic.sendAway(databaseId)
        directory.remove(databaseId)
      })
    } finally {
      if (!isGone) {
        directory.put(directory.rowOf(databaseId) ?? row)
        traffic.proceed(databaseId)
      }
      settled()
    }
    void this.#deps.cluster.ask(TOPICS.moved, { databaseId })
    void this.#deps.homes.announce([databaseId])
    logger.info('database_home_changed', { databaseId, node: target, durationMs: clock.now() - beganMs })
  }

  /** Changes the home when the copy has all writes. No client reaches the engine meanwhile. */
  async #change(move: moves.MoveRow, peer: Peer): Promise<void> {
    const { fleet, usage } = this.#deps
    const replication = await fleet.replicationWith(move.database_id)
    await replication.pauseWrites(PAUSE_MS)
    try {
      await this.#untilEqual(move, peer, replication)
      await usage.handOver(move.database_id)
      if (!(await this.#swap(move))) throw new MoveFailed('the move was ended')
    } catch (error) {
      await replication.resumeWrites()
      throw error
    }
    this.#open.delete(move.move_id)
  }

  /** Waits for large commands while nobody else has to. New ones may begin meanwhile, so it ends after some time. */
  async #received(databaseId: string): Promise<void> {
    const { traffic, clock } = this.#deps
    const endMs = performance.now() + RECEIVED_WITHIN_MS
    while (!this.#isStopped && traffic.isReceiving(databaseId) && performance.now() < endMs) await pause(clock, POLL_MS)
  }

  /**
   * Has new commands wait, once the engine has answered what it had. A command of which it has only a part has no effect, and
   * its client alone is disconnected. If commands run for longer, all clients are disconnected, and those commands have no answer.
   */
  async #released(databaseId: string): Promise<void> {
    const { traffic, clock, directory, usage } = this.#deps
    const endMs = performance.now() + RELEASE_WITHIN_MS
    while (!traffic.hold(databaseId) && performance.now() < endMs) await pause(clock, CLOSE_POLL_MS)
    traffic.breakOff(databaseId)
    if (traffic.hold(databaseId)) return
    await usage.handOver(databaseId)
    await usage.expect(databaseId)
    traffic.sendAway(databaseId)
    directory.remove(databaseId)
  }

  async #untilNear(move: moves.MoveRow, peer: Peer, own: Replication): Promise<void> {
    for (;;) {
      const theirs = await this.#progress(move, peer)
      if (theirs.kind === 'following' && theirs.isLogged) {
        const { replid, offset } = await own.position()
        if (theirs.replid === replid && offset - theirs.offset < NEAR_BYTES) return
      }
      await pause(this.#deps.clock, POLL_MS)
    }
  }

  /** Resolves when the copy has all writes. */
  async #untilEqual(move: moves.MoveRow, peer: Peer, replication: Replication): Promise<void> {
    const endMs = performance.now() + EQUAL_WITHIN_MS
    for (;;) {
      const theirs = await this.#progress(move, peer)
      if (isEqual(theirs, await replication.position())) return
      if (performance.now() > endMs) throw new MoveFailed('the copy did not catch up within 5 s')
      await pause(this.#deps.clock, CLOSE_POLL_MS)
    }
  }

  /** @throws MoveFailed when the target does not answer or has given up. */
  async #progress(move: moves.MoveRow, peer: Peer): Promise<Exclude<Progress, { kind: 'unknown' | 'failed' }>> {
    const endMs = performance.now() + SILENT_FOR_MS
    for (;;) {
      if (this.#isStopped) throw new MoveFailed(`the node ${this.#deps.node} was stopped`)
      const { database_id: databaseId, move_id: moveId } = move
      const [found] = await this.#deps.cluster.ask(TOPICS.progress, { databaseId, moveId }, peer.incarnation)
      const progress = found && progressOf(found.answer)
      if (progress?.kind === 'unknown') throw new MoveFailed(`the node ${peer.name} was restarted`)
      if (progress?.kind === 'failed') throw new MoveFailed(progress.problem)
      if (progress) return progress
      if (performance.now() > endMs) throw new MoveFailed(`the node ${peer.name} does not answer`)
      await pause(this.#deps.clock, POLL_MS)
    }
  }

  /**
   * Changes the home. When the answer to the commit is lost, the row tells, which may be deleted by then; until it can be
   * read, clients wait.
   */
  async #swap({ move_id: moveId, database_id: databaseId }: moves.MoveRow): Promise<boolean> {
    const { store, clock, node } = this.#deps
    for (;;) {
      try {
        if (await store.run(moves.swap, { moveId, databaseId })) return true
        return (await store.run(moves.database, { databaseId }))?.home !== node
      } catch (error) {
        if (this.#isStopped || !(isError(error, 'store_unavailable') || isError(error, 'store_outcome_unknown')))
          throw error
        await pause(clock, RETRY_MS)
      }
    }
  }

  /** Tells the new home. One that does not answer finds the row at its next look or start. */
  async #taken({ database_id: databaseId }: moves.MoveRow, { incarnation }: Peer): Promise<void> {
    const { cluster, clock } = this.#deps
    const endMs = performance.now() + TAKEN_WITHIN_MS
    while (performance.now() < endMs) {
      const [found] = await cluster.ask(TOPICS.take, { databaseId }, incarnation)
      if (found) return
      await pause(clock, POLL_MS)
    }
  }

  /** A node that has just started is known after the next look at the nodes. */
  async #target({ target }: moves.MoveRow): Promise<Peer> {
    const { cluster, clock } = this.#deps
    const endMs = performance.now() + KNOWN_WITHIN_MS
    for (;;) {
      const peer = cluster.peers.find(({ name, state }) => name === target && state === 'live')
      if (peer) return peer
      if (this.#isStopped || performance.now() > endMs) throw new MoveFailed(`the node ${target} does not run`)
      await pause(clock, RETRY_MS)
    }
  }

  async #ask({ name, incarnation }: Peer, topic: string, payload: unknown): Promise<void> {
    const [found] = await this.#deps.cluster.ask(topic, payload, incarnation)
    if (!found) throw new MoveFailed(`the node ${name} does not answer`)
  }
}

const isEqual = (theirs: Progress, own: ReplicationPosition): boolean =>
  theirs.kind === 'following' && theirs.isLogged && theirs.replid === own.replid && theirs.offset === own.offset
