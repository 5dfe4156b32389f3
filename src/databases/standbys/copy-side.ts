import { pause, TasksByKey } from '../../base/index.js'
import { DEAD_AFTER_MS } from '../../cluster/index.js'
import type { ReplicationPlace } from '../../fleet/index.js'
import { HomeRelay, makeSpace, NoSpace, problemOf } from '../copies.js'
import { engineSpecOf } from '../desired-engine.js'
import { openStream } from '../moves/streams.js'
import * as databases from '../transactions/databases.js'
import type { PlacedStandby } from '../transactions/standbys.js'
import * as standbys from '../transactions/standbys.js'
import { StandbyCopy } from './copy.js'
import {
  type CopyProgress,
  type FollowAnswer,
  type FollowRequest,
  type ReachRequest,
  STANDBY_SERVICE,
  type StandbysDeps,
} from './deps.js'

/** How long a copy may take to reach a place; then the home asks again. */
const REACH_WITHIN_MS = 300
const REACH_EVERY_MS = 1

/** A copy for which the disk had no space is begun again after this time: it takes space from the databases of this node. */
const SPACE_AFTER_MS = 30_000

/**
 * Keeps copies of databases of other nodes, as standbys; `copy.ts` has the states of one.
 *
 * - A home asks for its copy about once a second (`follow`). That begins the copy, makes it use another password, or
 *   restarts it after a failure, and answers how far it is. Work on the files of one database runs one after the other.
 * - The answer promises that this node does not take over for a while. It promises nothing if the store says that the home
 *   is dead or another node is the home, or if the copy is sealed.
 * - `Takeover` seals a copy, cuts it off when the last promise is over, and either makes it the home or gives it up.
 * - A copy that no row asks for is deleted (`sweep`).
 */
export class CopySide {
  readonly #deps: StandbysDeps
  readonly #copies = new Map<string, StandbyCopy>()
  /** The standbys of this node, as last read. */
  #rows: ReadonlyMap<string, PlacedStandby> = new Map()
  /** When each home was last promised something, monotonic. */
  readonly #promisedMs = new Map<string, number>()
  /** Work on the copies, one after the other for each database. */
  readonly #work = new TasksByKey()

  constructor(deps: StandbysDeps) {
    this.#deps = deps
  }

  /** Awaited before the files of a database are replaced. */
  beforeCopy: (databaseId: string) => Promise<void> = () => Promise.resolve()

  /** Whether this node keeps a copy, or begins to. */
  has(databaseId: string): boolean {
    return this.#copies.has(databaseId)
  }

  /** Cuts all streams; the copies stay on disk. */
  async stop(): Promise<void> {
    for (const copy of this.#copies.values()) copy.end()
    this.#copies.clear()
    await this.#work.idle()
  }

  /** Follows a home if this node does not yet. Resolves to how far the copy is, and a promise. */
  async follow(request: FollowRequest): Promise<FollowAnswer> {
    const progress = await this.#follow(request)
    if (!this.#mayPromise(request)) return { progress, promise: 'none' }
    this.#promisedMs.set(request.databaseId, performance.now())
    return { progress, promise: 'given' }
  }

  /**
   * Whether a copy has everything up to a place; gives it a moment to get there. If so, the copy may take over only with
   * all of that. A copy that is taking over has reached nothing.
   */
  async reach({ databaseId, epoch, source, replid, offset }: ReachRequest): Promise<boolean> {
    const endMs = performance.now() + REACH_WITHIN_MS
    for (;;) {
      const place = await (await this.#deps.fleet.replicationWith(databaseId)).place()
      const copy = this.#copies.get(databaseId)
      const follows = copy?.epoch === epoch && copy.source === source && copy.state.kind === 'complete'
      if (!copy || !follows || place.replid !== replid) return false
      if (place.offset >= offset) {
        copy.report(place)
        return true
      }
      if (performance.now() > endMs) return false
      await pause(this.#deps.clock, REACH_EVERY_MS)
    }
  }

  /**
   * Whether a promise may be given: only to the home that the store names, as last read, and whose incarnation is not dead.
   */
  #mayPromise({ databaseId, epoch, source }: FollowRequest): boolean {
    const row = this.#rows.get(databaseId)
    if (row?.home !== source || (row.now_epoch ?? 1) !== epoch) return false
    return row.home_state !== 'dead' && this.#copies.get(databaseId)?.state.kind !== 'sealed'
  }

  /**
   * Gives no more promises about a copy. The copy still follows, because its home may answer until the last promise is
   * over. Returns the place that was last reported to the home; undefined when the copy is not known to be whole.
   */
  seal(databaseId: string, epoch: number): ReplicationPlace | undefined {
    const copy = this.#copies.get(databaseId)
    return copy?.epoch === epoch ? copy.seal() : undefined
  }

  /** Whether a copy is known to be whole, so that it may take over. */
  isWhole(databaseId: string, epoch: number): boolean {
    const copy = this.#copies.get(databaseId)
    return copy?.epoch === epoch && (copy.state.kind === 'complete' || copy.state.kind === 'sealed')
  }

  /** Ends the replication of a sealed copy: nothing changes it any more. */
  cut(databaseId: string): void {
    this.#sealed(databaseId)?.relay.close()
  }

  /** Gives up a sealed copy: it is made again when its home asks. */
  unseal(databaseId: string): void {
    this.#sealed(databaseId)?.fail(`the node ${this.#deps.node} was about to take over`, 0)
  }

  #sealed(databaseId: string): StandbyCopy | undefined {
    const copy = this.#copies.get(databaseId)
    return copy?.state.kind === 'sealed' ? copy : undefined
  }

  /** How long the last promise to a home still holds, milliseconds. */
  promisedFor(databaseId: string): number {
    const sinceMs = performance.now() - (this.#promisedMs.get(databaseId) ?? Number.NEGATIVE_INFINITY)
    return Math.max(0, DEAD_AFTER_MS - sinceMs)
  }

  async #follow(request: FollowRequest): Promise<CopyProgress> {
    const { databaseId, epoch, source, password } = request
    const copy = this.#copies.get(databaseId)
    if (copy?.state.kind === 'sealed' || (copy && copy.epoch > epoch)) {
      return { kind: 'failed', problem: 'the database has another home' }
    }
    if (!copy || copy.epoch < epoch || copy.source !== source || copy.state.kind === 'over') {
      this.#begin(request)
      return { kind: 'copying' }
    }
    if (copy.state.kind === 'failed') {
      const { problem, retryAtMs } = copy.state
      if (performance.now() >= retryAtMs) this.#begin(request)
      return { kind: 'failed', problem }
    }
    if (copy.state.kind === 'beginning') return { kind: 'copying' }
    if (copy.relay.password !== password) {
      this.#queue(databaseId, copy, () => this.#connect(databaseId, copy, password))
      return { kind: 'copying' }
    }
    return this.#progress(databaseId, copy)
  }

  /** Deletes the copies that no row asks for any more. A database that this node is the home of is not a copy. */
  sweep(rows: readonly PlacedStandby[]): void {
    this.#rows = new Map(rows.filter((row) => this.#isHere(row)).map((row) => [row.database_id, row]))
    for (const databaseId of this.#promisedMs.keys()) {
      if (!this.#rows.has(databaseId) && this.promisedFor(databaseId) === 0) this.#promisedMs.delete(databaseId)
    }
    for (const [databaseId, copy] of this.#copies) {
      if (this.#rows.has(databaseId)) continue
      this.#copies.delete(databaseId)
      copy.end()
      this.#queue(databaseId, copy, () => this.#discard(databaseId))
    }
  }

  #isHere({ node }: PlacedStandby): boolean {
    return node === this.#deps.node
  }

  /** Forgets a copy, and resolves when no work on its files is active. A later sweep does not delete them. */
  async releaseFiles(databaseId: string): Promise<void> {
    const copy = this.#copies.get(databaseId)
    this.#copies.delete(databaseId)
    copy?.end()
    await this.#work.idle(databaseId)
  }

  async #progress(databaseId: string, copy: StandbyCopy): Promise<CopyProgress> {
    const { fleet } = this.#deps
    const { replid, offset, isLinked, isLogged, hasLogFailed } = await (
      await fleet.replicationWith(databaseId)
    ).position()
    if (isConnected(copy) && !(isLinked && isLogged)) {
      // The engine would retry for hours, on a disk that other databases need.
      const isFailing = hasLogFailed || !(await fleet.checkSpace())
      if (isFailing && isConnected(copy)) this.#giveUp(databaseId, copy)
      return { kind: 'copying' }
    }
    if (!isLinked) return { kind: 'copying' }
    copy.report({ replid, offset })
    return copy.state.kind === 'complete' ? { kind: 'following', replid, offset } : { kind: 'copying' }
  }

  /** Deletes the files of a copy that has no space. */
  #giveUp(databaseId: string, copy: StandbyCopy): void {
    this.#fail(databaseId, copy, new NoSpace(this.#deps.node))
    this.#queue(databaseId, copy, () => this.#deps.fleet.remove(databaseId))
  }

  #begin({ databaseId, epoch, source, password, bytes }: FollowRequest): void {
    const { store, cluster, node } = this.#deps
    const head = { moveId: '', databaseId, epoch }
    const relay = new HomeRelay(() => openStream(cluster, source, head, STANDBY_SERVICE))
    const copy = new StandbyCopy({ epoch, source }, relay)
    const earlier = this.#copies.get(databaseId)
    earlier?.end()
    this.#copies.set(databaseId, copy)
    this.#queue(databaseId, copy, async () => {
      // A request may be older than the removal of the standby, and a move may be writing the files now. So the copy is
      // forgotten: a sweep would delete the files, which it has to do only for an earlier copy.
      const mayCopy = await store.run(standbys.mayCopy, { databaseId, home: source, node })
      if (!mayCopy) return this.#forget(databaseId, copy, earlier)
      if (hasEnded(copy)) return
      await this.beforeCopy(databaseId)
      await makeSpace(this.#deps, databaseId, bytes)
      await this.#connect(databaseId, copy, password)
    })
  }

  #forget(databaseId: string, copy: StandbyCopy, earlier: StandbyCopy | undefined): void {
    copy.end()
    if (this.#copies.get(databaseId) !== copy) return
    if (earlier) this.#copies.set(databaseId, earlier)
    else this.#copies.delete(databaseId)
  }

  /** Makes the engine follow the home. */
  async #connect(databaseId: string, copy: StandbyCopy, password: string): Promise<void> {
    const { store, fleet, plans } = this.#deps
    const row = await store.run(databases.find, { databaseId })
    if (!row || hasEnded(copy) || copy.relay.password === password) return
    const follows = await copy.relay.followedWith(password)
    const { members, ...spec } = engineSpecOf(row, plans)
    await fleet.ensure({ ...spec, members: members.slice(0, 1), data: 'may-begin', follows }, 'while-loading')
    copy.connected()
  }

  async #discard(databaseId: string): Promise<void> {
    const { store, fleet, node, logger } = this.#deps
    const row = await store.run(databases.find, { databaseId })
    if (row?.home === node || this.#copies.has(databaseId)) return
    await fleet.remove(databaseId)
    logger.info('database_standby_deleted', { databaseId })
  }

  #queue(databaseId: string, copy: StandbyCopy, work: () => Promise<void>): void {
    void this.#work.take(databaseId, () => work().catch((error: unknown) => this.#fail(databaseId, copy, error)))
  }

  #fail(databaseId: string, copy: StandbyCopy, error: unknown): void {
    const { logger, node } = this.#deps
    logger.warn('database_standby_failed', { databaseId, error })
    copy.fail(problemOf(error, node), error instanceof NoSpace ? SPACE_AFTER_MS : 0)
  }
}

/** Functions, because the compiler would assume that the state does not change during an `await`. */
const isConnected = ({ state }: StandbyCopy): boolean => state.kind === 'connected'
const hasEnded = ({ state }: StandbyCopy): boolean => state.kind === 'over' || state.kind === 'failed'
