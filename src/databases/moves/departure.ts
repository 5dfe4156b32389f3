import { pause } from '../../base/index.js'
import type { Peer } from '../../cluster/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Replication, ReplicationPosition } from '../../fleet/index.js'
import * as databases from '../transactions/databases.js'
import * as moves from '../transactions/moves.js'
import { type MovesDeps, type Progress, progressOf, TOPICS } from './deps.js'

const POLL_MS = 100
/** Interval of comparisons while clients wait. */
const CLOSE_POLL_MS = 5
/** The move is given up when the target does not answer for this long, as long as no client waits. */
const SILENT_FOR_MS = 10_000
/** Clients wait only when the copy is this close. */
const NEAR_BYTES = 1_000_000
/** Time for large commands in transit to arrive completely, before new commands begin to wait. */
const RECEIVED_WITHIN_MS = 10_000
/** Clients whose commands run for longer are disconnected. */
const RELEASE_WITHIN_MS = 1_000
const EQUAL_WITHIN_MS = 5_000
/**
 * Pause of writes, far longer than a switch takes. An engine whose Homeport has died ends, so no pause outlives its reason.
 */
const PAUSE_MS = 3_600_000
const TAKEN_WITHIN_MS = 5_000
const RETRY_MS = 500
const KNOWN_WITHIN_MS = 3_000

/** Why a move was given up, for the operator. */
export class MoveFailed extends Error {}

/** What the home lets the target do while a move is active. */
export interface Opening {
  /** The target may follow this engine, and read the backups. */
  open(socketPath: string): void
  close(): void
  /** Whether this node stops. Then moves that have not switched are given up. */
  readonly isStopped: boolean
}

/** Repeats work on the store while the store is away, and passes other errors on. */
export async function untilStored<Result>(
  { clock }: Pick<MovesDeps, 'clock'>,
  opening: Pick<Opening, 'isStopped'>,
  work: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const isAway = isError(error, 'store_unavailable') || isError(error, 'store_outcome_unknown')
      if (opening.isStopped || !isAway) throw error
      await pause(clock, RETRY_MS)
    }
  }
}

/**
 * Carries out one move that has begun, at the home: the database leaves this node. `run` is the whole story; each step is a
 * method.
 *
 * ```
 *   step       what happens                                         when it fails, or this node dies
 *   ─────────  ───────────────────────────────────────────────────  ──────────────────────────────────
 *   meet       the target takes part, and the engine runs here      ┐
 *   copy       the target's engine copies this one and follows it   │ this node serves as before, the
 *   near       … until it lacks little                              │ target deletes its copy
 *   received   large commands that were on their way are here       ┘
 *   ── from here on, clients wait ──
 *   released   the engine has answered all it had                   ┐ the same, and what waits is sent
 *   equal      the copy has every write, and no more can come       │ to the engine here
 *   swapped    one transaction makes the target the home            ┘
 *   taken      the target serves                                    ┐ the target serves: it finds the
 *   left       clients go there, nothing is served here             ┘ row by itself
 * ```
 */
export class Departure {
  readonly #deps: MovesDeps
  readonly #move: moves.MoveRow
  readonly #opening: Opening

  constructor(deps: MovesDeps, move: moves.MoveRow, opening: Opening) {
    this.#deps = deps
    this.#move = move
    this.#opening = opening
  }

  /**
   * Resolves when the target is the home.
   * @throws MoveFailed when it is not, and will not be.
   */
  async run(): Promise<void> {
    const target = await this.#meet()
    const replication = await this.#copy(target)
    await this.#near(target, replication)
    await this.#received()
    await this.#whileClientsWait(async () => {
      await this.#released()
      await this.#swapWhenEqual(target)
      await this.#taken(target)
    })
  }

  get #databaseId(): string {
    return this.#move.database_id
  }

  /** Waits until the target is known: a node that has just started is known after the next look at the nodes. */
  async #meet(): Promise<Peer> {
    const { cluster, clock, sleep, fleet } = this.#deps
    const { target } = this.#move
    const endMs = performance.now() + KNOWN_WITHIN_MS
    for (;;) {
      const peer = cluster.peers.find(({ name, state }) => name === target && state === 'live')
      if (peer) {
        sleep.wake(this.#databaseId)
        await fleet.endpoints(this.#databaseId, undefined, 'while-loading')
        return peer
      }
      if (this.#opening.isStopped || performance.now() > endMs) {
        throw new MoveFailed(`the node ${target} does not run`)
      }
      await pause(clock, RETRY_MS)
    }
  }

  /** Resolves when the target has begun to copy. A busy target may need longer than one question waits. */
  async #copy(target: Peer): Promise<Replication> {
    const { fleet } = this.#deps
    const { database_id: databaseId, move_id: moveId, epoch } = this.#move
    const replication = await fleet.replicationWith(databaseId)
    this.#opening.open(replication.socketPath)
    const bytes = await fleet.usedBytes(databaseId)
    const request = { moveId, databaseId, epoch, password: replication.password, bytes }
    await this.#answerOf(target, TOPICS.receive, request, performance.now() + SILENT_FOR_MS)
    return replication
  }

  async #near(target: Peer, own: Replication): Promise<void> {
    for (;;) {
      const theirs = await this.#progress(target, performance.now() + SILENT_FOR_MS)
      if (theirs.kind === 'following' && theirs.isLogged) {
        const { replid, offset } = await own.position()
        if (theirs.replid === replid && offset - theirs.offset < NEAR_BYTES) return
      }
      await pause(this.#deps.clock, POLL_MS)
    }
  }

  /** Waits for large commands in transit, while no client has to wait. Ends after some time, because new ones may begin. */
  async #received(): Promise<void> {
    const { traffic, clock } = this.#deps
    const endMs = performance.now() + RECEIVED_WITHIN_MS
    const isWaiting = (): boolean => !this.#opening.isStopped && traffic.isReceiving(this.#databaseId)
    while (isWaiting() && performance.now() < endMs) await pause(clock, POLL_MS)
  }

  /** Makes clients wait while `work` runs; then the target serves them, or this node as before. */
  async #whileClientsWait(work: () => Promise<void>): Promise<void> {
    const { changes, directory, locator, clock, logger, traffic, cluster, homes } = this.#deps
    const databaseId = this.#databaseId
    const row = directory.rowOf(databaseId)
    if (!row) throw new MoveFailed('the database is gone')
    const beganMs = clock.now()
    const settled = locator.leaving(row)
    directory.hideTokens(databaseId)
    let isGone = false
    try {
      await changes.holding(databaseId, async () => {
        await work()
        isGone = true
        locator.moved(this.#move.target, row)
        // The waiting commands have reached no engine. Applications would get an error reply to them, but most clients send
        // commands again after a disconnect.
        traffic.disconnectClients(databaseId)
        directory.remove(databaseId)
      })
    } finally {
      if (!isGone) {
        directory.put(directory.rowOf(databaseId) ?? row)
        traffic.proceed(databaseId)
      }
      settled()
    }
    void cluster.ask(TOPICS.moved, { databaseId })
    void homes.announce([databaseId])
    const durationMs = clock.now() - beganMs
    logger.info('database_home_changed', { databaseId, node: this.#move.target, durationMs })
  }

  /**
   * Makes new commands wait, once the engine has answered the commands that it had. A command that has arrived only in part
   * has no effect, and only its client is disconnected. If commands run for longer, all clients are disconnected, and those
   * commands get no answer.
   */
  async #released(): Promise<void> {
    const { traffic, clock, directory, usage } = this.#deps
    const databaseId = this.#databaseId
    const endMs = performance.now() + RELEASE_WITHIN_MS
    while (!traffic.hold(databaseId) && performance.now() < endMs) await pause(clock, CLOSE_POLL_MS)
    traffic.abortIncomplete(databaseId)
    if (traffic.hold(databaseId)) return
    await usage.handOver(databaseId)
    await usage.expect(databaseId)
    traffic.disconnectClients(databaseId)
    directory.remove(databaseId)
  }

  /**
   * Changes the home when the copy has all writes. No client reaches the engine meanwhile, and paused writes do not run.
   */
  async #swapWhenEqual(target: Peer): Promise<void> {
    const { fleet, usage } = this.#deps
    const replication = await fleet.replicationWith(this.#databaseId)
    await replication.pauseWrites(PAUSE_MS)
    try {
      await this.#equal(target, replication)
      await usage.handOver(this.#databaseId)
      if (!(await this.#swapped())) throw new MoveFailed('the move was ended')
    } catch (error) {
      await replication.resumeWrites()
      throw error
    }
    this.#opening.close()
  }

  /** Resolves when the copy has all writes. */
  async #equal(target: Peer, replication: Replication): Promise<void> {
    const endMs = performance.now() + EQUAL_WITHIN_MS
    for (;;) {
      const theirs = await this.#progress(target, endMs)
      if (isEqual(theirs, await replication.position())) return
      if (performance.now() > endMs) throw new MoveFailed('the copy did not catch up within 5 s')
      await pause(this.#deps.clock, CLOSE_POLL_MS)
    }
  }

  /**
   * Resolves to whether the home has changed. When the answer to the commit is lost, the row shows it, which may be deleted
   * by then. Clients wait until the row can be read.
   */
  #swapped(): Promise<boolean> {
    const { store, node } = this.#deps
    const { move_id: moveId, database_id: databaseId } = this.#move
    return untilStored(this.#deps, this.#opening, async () => {
      if (await store.run(moves.swap, { moveId, databaseId })) return true
      return (await store.run(databases.find, { databaseId }))?.home !== node
    })
  }

  /** Asks the new home to serve. A node that does not answer finds the row at its next look or start. */
  async #taken({ incarnation }: Peer): Promise<void> {
    const { cluster, clock } = this.#deps
    const endMs = performance.now() + TAKEN_WITHIN_MS
    while (performance.now() < endMs) {
      const [found] = await cluster.ask(TOPICS.take, { databaseId: this.#databaseId }, incarnation)
      if (found) return
      await pause(clock, POLL_MS)
    }
  }

  /**
   * How far the copy is.
   * @param endMs when a target that does not answer is given up, monotonic milliseconds.
   * @throws MoveFailed when the target does not answer, has ended, or has given up.
   */
  async #progress(target: Peer, endMs: number): Promise<Exclude<Progress, { kind: 'unknown' | 'failed' }>> {
    const { database_id: databaseId, move_id: moveId } = this.#move
    for (;;) {
      const progress = progressOf(await this.#answerOf(target, TOPICS.progress, { databaseId, moveId }, endMs))
      if (progress?.kind === 'unknown') throw new MoveFailed(`the node ${target.name} was restarted`)
      if (progress?.kind === 'failed') throw new MoveFailed(progress.problem)
      if (progress) return progress
      await this.#again(target, endMs)
    }
  }

  /** Asks the target until it answers. @throws MoveFailed like `#progress`. */
  async #answerOf(target: Peer, topic: string, payload: unknown, endMs: number): Promise<unknown> {
    for (;;) {
      if (this.#opening.isStopped) throw new MoveFailed(`the node ${this.#deps.node} was stopped`)
      const [found] = await this.#deps.cluster.ask(topic, payload, target.incarnation)
      if (found) return found.answer
      await this.#again(target, endMs)
    }
  }

  /** Waits before the target is asked again. @throws MoveFailed when it is not asked any more. */
  async #again({ name, incarnation }: Peer, endMs: number): Promise<void> {
    const isThere = this.#deps.cluster.peers.some((peer) => peer.incarnation === incarnation)
    if (!isThere) throw new MoveFailed(`the node ${name} has ended`)
    if (performance.now() > endMs) throw new MoveFailed(`the node ${name} does not answer`)
    await pause(this.#deps.clock, POLL_MS)
  }
}

const isEqual = (theirs: Progress, own: ReplicationPosition): boolean =>
  theirs.kind === 'following' && theirs.isLogged && theirs.replid === own.replid && theirs.offset === own.offset
