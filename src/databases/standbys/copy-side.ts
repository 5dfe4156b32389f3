import { pause, Turns } from '../../base/index.js'
import { DEAD_AFTER_MS } from '../../cluster/index.js'
import type { ReplicationPlace } from '../../fleet/index.js'
import { engineSpecOf } from '../desired-engine.js'
import { openStream, Relay } from '../moves/streams.js'
import { setAsideOne } from '../set-aside.js'
import * as databases from '../transactions/databases.js'
import type { PlacedStandby } from '../transactions/standbys.js'
import * as standbys from '../transactions/standbys.js'
import {
  type CopyProgress,
  type FollowAnswer,
  type FollowRequest,
  type ReachRequest,
  STANDBY_SERVICE,
  type StandbysDeps,
} from './deps.js'

/** How long a copy is given to reach a place; the home asks again. */
const REACH_WITHIN_MS = 300
const REACH_EVERY_MS = 1

/** A copy for which the disk had no space is begun again after this time: it takes space from the databases of this node. */
const SPACE_AFTER_MS = 30_000

/** Why there is no copy, for the operator. */
class NoSpace extends Error {
  constructor(node: string) {
    super(`the disk of the node ${node} has no space for the copy`)
  }
}

/** A copy that this node keeps. */
interface Copy {
  readonly epoch: number
  readonly source: string
  state: 'beginning' | 'connected' | 'complete' | 'sealed' | 'failed' | 'over'
  /** Of the home's engine, as last heard. */
  password: string
  relay: Relay | undefined
  problem: string
  /** Before then, monotonic, a failed copy is not begun again. */
  retryAtMs: number
  /** As the home has last heard. */
  reported: ReplicationPlace | undefined
}

/** Keeps copies of databases of other nodes. */
export class CopySide {
  readonly #deps: StandbysDeps
  readonly #copies = new Map<string, Copy>()
  /** Of this node, as last read. */
  #rows: ReadonlyMap<string, PlacedStandby> = new Map()
  /** When each home was last promised something, monotonic. */
  readonly #promisedMs = new Map<string, number>()
  /** What this node does with the copies, one at a time for each database. */
  readonly #work = new Turns()

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
    for (const copy of this.#copies.values()) end(copy)
    this.#copies.clear()
    await this.#work.idle()
  }

  /** Follows a home if this node does not yet, and answers how far it is. */
  async follow(request: FollowRequest): Promise<FollowAnswer> {
    const progress = await this.#follow(request)
    if (!this.#mayPromise(request)) return { progress, promise: 'none' }
    this.#promisedMs.set(request.databaseId, performance.now())
    return { progress, promise: 'given' }
  }

  /**
   * Whether a copy has everything up to a place, which it gets a moment to reach. A copy that has may be taken over only with
   * all of that, and one that is being taken over has reached nothing.
   */
  async reach({ databaseId, epoch, source, replid, offset }: ReachRequest): Promise<boolean> {
    const endMs = performance.now() + REACH_WITHIN_MS
    for (;;) {
      const place = await (await this.#deps.fleet.replicationWith(databaseId)).place()
      const copy = this.#copies.get(databaseId)
      const follows = copy?.epoch === epoch && copy.source === source && copy.state === 'complete'
      if (!copy || !follows || place.replid !== replid) return false
      if (place.offset >= offset) {
        report(copy, place)
        return true
      }
      if (performance.now() > endMs) return false
      await pause(this.#deps.clock, REACH_EVERY_MS)
    }
  }

  /** Only to a home that the store was last seen to have, in a life that may act. */
  #mayPromise({ databaseId, epoch, source }: FollowRequest): boolean {
    const row = this.#rows.get(databaseId)
    if (row?.home !== source || (row.now_epoch ?? 1) !== epoch) return false
    return row.home_life !== 'dead' && this.#copies.get(databaseId)?.state !== 'sealed'
  }

  /**
   * Ends all promises about a copy, which still follows: its home may answer until the last promise is over. Answers what the
   * home heard last; undefined when the copy is not known to be whole.
   */
  seal(databaseId: string, epoch: number): ReplicationPlace | undefined {
    const copy = this.#copies.get(databaseId)
    if (copy?.epoch !== epoch || !copy.reported || (copy.state !== 'complete' && copy.state !== 'sealed'))
      return undefined
    copy.state = 'sealed'
    return copy.reported
  }

  /** Ends the replication of a sealed copy: nothing changes it any more. */
  cut(databaseId: string): void {
    const copy = this.#copies.get(databaseId)
    if (copy?.state === 'sealed') copy.relay?.close()
  }

  /** Gives a sealed copy up: it is made again when its home asks. */
  unseal(databaseId: string): void {
    const copy = this.#copies.get(databaseId)
    if (copy?.state !== 'sealed') return
    copy.state = 'failed'
    copy.problem = `the node ${this.#deps.node} was about to take over`
  }

  /** How long the last promise to a home still holds, milliseconds. */
  promisedFor(databaseId: string): number {
    const sinceMs = performance.now() - (this.#promisedMs.get(databaseId) ?? Number.NEGATIVE_INFINITY)
    return Math.max(0, DEAD_AFTER_MS - sinceMs)
  }

  async #follow(request: FollowRequest): Promise<CopyProgress> {
    const { databaseId, epoch, source, password } = request
    const copy = this.#copies.get(databaseId)
    if (copy?.state === 'sealed' || (copy && copy.epoch > epoch)) {
      return { kind: 'failed', problem: 'the database has another home' }
    }
    const isOther = !copy || copy.epoch < epoch || copy.source !== source
    if (isOther || copy.state === 'failed') {
      if (isOther || performance.now() >= copy.retryAtMs) this.#begin(request)
      return copy?.state === 'failed' ? { kind: 'failed', problem: copy.problem } : { kind: 'copying' }
    }
    if (copy.state === 'beginning') return { kind: 'copying' }
    if (copy.password !== password) {
      this.#queue(databaseId, copy, () => this.#connect(databaseId, copy, password))
      return { kind: 'copying' }
    }
    return this.#progress(databaseId, copy)
  }

  /** Deletes the copies that no row asks for any more. A database that this node is the home of is not a copy. */
  sweep(rows: readonly PlacedStandby[]): void {
    this.#rows = new Map(rows.filter((row) => this.#isHere(row)).map((row) => [row.database_id, row]))
    for (const [databaseId, copy] of this.#copies) {
      if (this.#rows.has(databaseId)) continue
      this.#copies.delete(databaseId)
      end(copy)
      this.#queue(databaseId, undefined, () => this.#discard(databaseId))
    }
  }

  #isHere({ node }: PlacedStandby): boolean {
    return node === this.#deps.node
  }

  /** Forgets a copy, and resolves when nothing is being done with its files. A later sweep does not delete them. */
  async letGo(databaseId: string): Promise<void> {
    const copy = this.#copies.get(databaseId)
    this.#copies.delete(databaseId)
    if (copy) end(copy)
    await this.#work.idle(databaseId)
  }

  async #progress(databaseId: string, copy: Copy): Promise<CopyProgress> {
    const { fleet } = this.#deps
    const position = await (await fleet.replicationWith(databaseId)).position()
    if (copy.state === 'connected' && position.isLinked && position.isLogged) copy.state = 'complete'
    // The engine would try again for hours, on a disk that other databases need.
    const isFailing = position.hasLogFailed || !(await fleet.checkSpace())
    if (copy.state === 'connected' && isFailing) this.#giveUp(databaseId, copy)
    if (copy.state !== 'complete' || !position.isLinked) return { kind: 'copying' }
    const { replid, offset } = position
    report(copy, { replid, offset })
    return { kind: 'following', replid, offset }
  }

  /** Deletes what there is of a copy that has no space. */
  #giveUp(databaseId: string, copy: Copy): void {
    const { fleet, node } = this.#deps
    copy.state = 'beginning'
    copy.relay?.close()
    this.#queue(databaseId, copy, async () => {
      await fleet.remove(databaseId)
      throw new NoSpace(node)
    })
  }

  #begin({ databaseId, epoch, source, password, bytes }: FollowRequest): void {
    const old = this.#copies.get(databaseId)
    if (old) end(old)
    const copy: Copy = {
      epoch,
      source,
      password,
      state: 'beginning',
      relay: undefined,
      problem: '',
      retryAtMs: 0,
      reported: undefined,
    }
    this.#copies.set(databaseId, copy)
    this.#queue(databaseId, copy, async () => {
      const { store, fleet, node } = this.#deps
      const row = await store.run(databases.find, { databaseId })
      const asked = (await store.run(standbys.list, {})).some(
        (one) => one.database_id === databaseId && this.#isHere(one),
      )
      // A request may be older than the removal of the standby, and a move may be writing the files now.
      if (!asked) throw new Error('the standby of the database was removed')
      if (row?.home !== source) throw new Error('the node that asks is not the home of the database')
      if (copy.state === 'over') return
      await this.beforeCopy(databaseId)
      // This node may have been the home before.
      await fleet.suspend(databaseId)
      await setAsideOne(this.#deps, databaseId)
      await fleet.remove(databaseId)
      if (!(await fleet.checkSpace(bytes))) throw new NoSpace(node)
      await this.#connect(databaseId, copy, password)
    })
  }

  /** Has the engine follow the home through a port of its own: a new password is a new port, so the engine notices. */
  async #connect(databaseId: string, copy: Copy, password: string): Promise<void> {
    const { store, fleet, plans, cluster } = this.#deps
    const row = await store.run(databases.find, { databaseId })
    if (!row || copy.state === 'over' || (copy.relay && copy.password === password)) return
    const head = { moveId: '', databaseId, epoch: copy.epoch }
    const relay = new Relay(() => openStream(cluster, copy.source, head, STANDBY_SERVICE))
    const port = await relay.listen()
    copy.relay?.close()
    Object.assign(copy, { relay, password })
    const { members, ...spec } = engineSpecOf(row, plans)
    const follows = { port, password }
    await fleet.ensure({ ...spec, members: members.slice(0, 1), data: 'may-begin', follows }, 'while-loading')
    if (copy.state === 'beginning') copy.state = 'connected'
    if (isOver(copy)) relay.close()
  }

  async #discard(databaseId: string): Promise<void> {
    const { store, fleet, node, logger } = this.#deps
    const row = await store.run(databases.find, { databaseId })
    if (row?.home === node || this.#copies.has(databaseId)) return
    await fleet.remove(databaseId)
    logger.info('database_standby_deleted', { databaseId })
  }

  #queue(databaseId: string, copy: Copy | undefined, work: () => Promise<void>): void {
    void this.#work.take(databaseId, () => work().catch((error: unknown) => this.#fail(databaseId, copy, error)))
  }

  #fail(databaseId: string, copy: Copy | undefined, error: unknown): void {
    const { logger, node } = this.#deps
    logger.warn('database_standby_failed', { databaseId, error })
    if (!copy || copy.state === 'over') return
    end(copy)
    const hasSpace = !(error instanceof NoSpace)
    copy.state = 'failed'
    copy.problem = hasSpace ? `the node ${node} could not copy the data: see its log` : error.message
    if (!hasSpace) copy.retryAtMs = performance.now() + SPACE_AFTER_MS
  }
}

/** A call, because the state changes while others are awaited. */
const isOver = ({ state }: Copy): boolean => state === 'over'

/** The home hears this place: the copy may be taken over only with all of it. An answer of the engine may be late. */
function report(copy: Copy, place: ReplicationPlace): void {
  const isLate = copy.reported?.replid === place.replid && copy.reported.offset > place.offset
  if (!isLate) copy.reported = place
}

function end(copy: Copy): void {
  copy.state = 'over'
  copy.relay?.close()
}
