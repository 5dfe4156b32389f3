import { pause, TasksByKey, type Timer } from '../../base/index.js'
import type { Incarnation, Moment } from '../../cluster/index.js'
import { type Followed, HomeRelay, makeSpace, problemOf } from '../copies.js'
import { engineSpecOf } from '../desired-engine.js'
import type { ServingDirectory } from '../directory.js'
import type { DatabaseRow } from '../lifecycle.js'
import { openStream } from '../moves/streams.js'
import * as databases from '../transactions/databases.js'
import { Copy, type CopyOrigin, type UsedRow } from './copy.js'
import type { ReplicasDeps } from './deps.js'
import { type Beat, type BeatAnswer, placeOf, REPLICA_SERVICE, TOPICS, type WantedCopy } from './messages.js'
import { SiblingQuestions } from './sibling-questions.js'

/** A copy whose home is silent for this long is deleted. */
const FORGET_MS = 30_000
const SWEEP_EVERY_MS = 5_000
/** A copy that failed is begun again after this time. */
const RETRY_MS = 5_000
/** How old the place of a copy that follows may be in a report. */
const PLACE_FOR_MS = 1_000
/** An engine that answers later is reported with its last place. */
const PLACE_WITHIN_MS = 300

/** The last beat of a home: its incarnation and the number of the beat in it. */
interface HeardBeat {
  readonly incarnation: Incarnation
  readonly sequence: number
}

const isLater = (one: HeardBeat, other: HeardBeat): boolean =>
  one.incarnation > other.incarnation || (one.incarnation === other.incarnation && one.sequence > other.sequence)

/** What the node of a read region needs. */
export interface NodeSideDeps extends ReplicasDeps {
  readonly dataDir: string
  /** The users and limits of the copies that this node keeps. */
  readonly copies: ServingDirectory
}

/**
 * Keeps copies of databases of other nodes in the read region of this node; `copy.ts` has the states of one.
 *
 * - A home beats four times a second and names all copies that it wants here. Each beat begins copies, restarts failed
 *   ones, makes them use another password or row, gives them leases, and deletes those that it does not name any more.
 * - Work on the files of one database runs one after the other.
 * - A copy whose home is silent is deleted.
 */
export class NodeSide {
  readonly #deps: NodeSideDeps
  readonly #siblings: SiblingQuestions
  readonly #copies = new Map<string, Copy>()
  /** The last beat of each home, by its name. */
  readonly #heard = new Map<string, HeardBeat>()
  /** Work on the files of each database, one after the other. */
  readonly #work = new TasksByKey()
  #timer: Timer | undefined

  constructor(deps: NodeSideDeps) {
    this.#deps = deps
    this.#siblings = new SiblingQuestions(deps)
  }

  start(): void {
    this.#timer = this.#deps.clock.after(SWEEP_EVERY_MS, () => {
      const goneMs = performance.now() - FORGET_MS
      for (const copy of this.#copies.values()) if (copy.heardMs < goneMs) this.#drop(copy)
      this.start()
    })
  }

  async stop(): Promise<void> {
    this.#timer?.cancel()
    for (const copy of this.#copies.values()) copy.end()
    this.#copies.clear()
    await this.#work.idle()
  }

  /** The copy of a database. */
  copyOf(databaseId: string): Copy | undefined {
    return this.#copies.get(databaseId)
  }

  now(): Moment {
    return { monotonicMs: performance.now(), wallMs: this.#deps.clock.now() }
  }

  /** The place of a copy's primary in its history. Rejects when its home cannot be asked. */
  async primaryPlace(databaseId: string): Promise<{ readonly replid: string; readonly offset: number } | undefined> {
    const copy = this.#copies.get(databaseId)
    const { cluster } = this.#deps
    const peer = copy && cluster.peers.find(({ name }) => name === copy.source)
    const [found] = peer ? await cluster.ask(TOPICS.place, { databaseId }, peer.incarnation) : []
    if (!found) throw new Error('the home of the database does not answer')
    return placeOf(found.answer)
  }

  /** Applies a beat of a home. Reads that it no longer allows are refused before the answer is sent. */
  async beat(beat: Beat, incarnation: Incarnation): Promise<BeatAnswer | undefined> {
    // A home that was declared dead may believe for a while that it still is the home, and would end the copy of the new
    // home.
    if (!this.#deps.cluster.peers.some((peer) => peer.incarnation === incarnation)) return undefined
    const heard = this.#heard.get(beat.source)
    if (heard && !isLater({ incarnation, sequence: beat.sequence }, heard)) return undefined
    this.#heard.set(beat.source, { incarnation, sequence: beat.sequence })
    const wanted = new Map(beat.wanted.map((one) => [one.databaseId, one]))
    for (const copy of this.#copies.values()) {
      if (copy.source === beat.source && !wanted.has(copy.databaseId)) this.#drop(copy)
    }
    for (const one of beat.wanted) this.#follow(one, beat.source, incarnation)
    const own = [...this.#copies.values()].filter((copy) => copy.source === beat.source)
    await Promise.all(own.map((copy) => this.#look(copy)))
    const leaving = this.#work.keys.filter((databaseId) => !this.#copies.has(databaseId))
    return { stamp: this.now(), copies: own.map((copy) => copy.report()), leaving }
  }

  /** Leaves the files of a database to another task of this node. Resolves when no work on them is active here. */
  async releaseFiles(databaseId: string): Promise<void> {
    const copy = this.#copies.get(databaseId)
    if (copy) this.#forget(copy)
    await this.#work.idle(databaseId)
  }

  /** See `SiblingNodes` of the gateway. */
  askSiblings(databaseId: string, onMore: () => void): Promise<boolean> {
    const copy = this.#copies.get(databaseId)
    return copy ? this.#siblings.ask(copy, onMore) : Promise.resolve(false)
  }

  #follow(
    { databaseId, region, password, revision, lease }: WantedCopy,
    source: string,
    incarnation: Incarnation,
  ): void {
    const copy = this.#copies.get(databaseId)
    const row: UsedRow = { incarnation, revision }
    const nowMs = performance.now()
    const isOther = copy?.source !== source || copy.region !== region
    if (isOther || (copy.state.kind === 'failed' && copy.state.atMs < nowMs - RETRY_MS)) {
      if (password !== undefined) this.#begin({ databaseId, region, source }, password, row)
      return
    }
    copy.heardMs = nowMs
    const isCurrent = copy.uses(row)
    copy.allow(isCurrent ? lease : undefined)
    if (lease) this.#siblings.announce(copy)
    if (this.#work.has(databaseId) || copy.state.kind !== 'connected') return
    const known = password ?? copy.relay.password ?? ''
    if (!isCurrent || known !== copy.relay.password) this.#queue(copy, () => this.#connect(copy, known, row))
  }

  #begin(origin: CopyOrigin, password: string, row: UsedRow): void {
    const { cluster, hasOther } = this.#deps
    const { databaseId, source } = origin
    const head = { moveId: '', databaseId, epoch: 0 }
    const copy = new Copy(origin, new HomeRelay(() => openStream(cluster, source, head, REPLICA_SERVICE)))
    const old = this.#copies.get(databaseId)
    if (old) this.#forget(old)
    copy.heardMs = performance.now()
    this.#copies.set(databaseId, copy)
    this.#queue(copy, async () => {
      if (copy.hasEnded) return
      if (hasOther(databaseId)) throw new Error('this node has the database for another reason')
      await makeSpace(this.#deps, databaseId)
      await this.#connect(copy, password, row)
    })
  }

  /** Makes the engine follow the home, with the users and limits that the database has now. */
  async #connect(copy: Copy, password: string, used: UsedRow): Promise<void> {
    const { store, fleet, copies } = this.#deps
    const row = await store.run(databases.find, { databaseId: copy.databaseId })
    if (copy.hasEnded) return
    if (!row || row.home !== copy.source) throw new Error('the node that asks is not the home of the database')
    if (copy.relay.password !== password) copy.place = { ...copy.place, isLinked: false }
    const follows = await copy.relay.followedWith(password)
    // The copy may have been dropped meanwhile. Then clients must not see it any more.
    if (copy.hasEnded) return
    copies.put(row)
    await fleet.ensure(this.#specOf(copy, row, follows), 'while-loading')
    copy.connected(used)
  }

  #specOf({ region }: Copy, row: DatabaseRow, follows: Followed) {
    const { members, ...spec } = engineSpecOf(row, this.#deps.plans)
    return {
      ...spec,
      members: [{ region, role: 'primary' as const }],
      // A copy needs no log, because it has nothing that the home does not have.
      persistence: 'snapshot' as const,
      data: 'may-begin' as const,
      follows,
    }
  }

  /** Never rejects, and takes no longer than an answer may. */
  async #look(copy: Copy): Promise<void> {
    if (copy.state.kind !== 'connected') return
    const { isLinked, lookedMs } = copy.place
    if (isLinked && performance.now() - lookedMs < PLACE_FOR_MS) return
    await Promise.race([this.#ask(copy), pause(this.#deps.clock, PLACE_WITHIN_MS)])
  }

  async #ask(copy: Copy): Promise<void> {
    try {
      const lookedMs = performance.now()
      const { replid, offset, isLinked } = await (await this.#deps.fleet.replicationWith(copy.databaseId)).position()
      copy.place = { replid, offset, isLinked, lookedMs }
    } catch {
      copy.place = { ...copy.place, isLinked: false }
    }
  }

  /** Deletes a copy. */
  #drop(copy: Copy): void {
    const { databaseId } = copy
    this.#forget(copy)
    this.#queue(copy, async () => {
      if (this.#copies.has(databaseId) || this.#deps.hasOther(databaseId)) return
      await this.#deps.fleet.remove(databaseId)
      this.#deps.logger.info('database_replica_dropped', { databaseId, region: copy.region })
    })
  }

  #forget(copy: Copy): void {
    copy.end()
    if (this.#copies.get(copy.databaseId) !== copy) return
    this.#copies.delete(copy.databaseId)
    this.#deps.copies.remove(copy.databaseId)
  }

  #queue(copy: Copy, work: () => Promise<void>): void {
    void this.#work.take(copy.databaseId, () => work().catch((error: unknown) => this.#fail(copy, error)))
  }

  #fail(copy: Copy, error: unknown): void {
    if (copy.state.kind === 'over') return
    const { databaseId, region } = copy
    const { logger, node } = this.#deps
    logger.warn('database_replica_not_kept', { databaseId, region, error })
    copy.fail(problemOf(error, node))
  }
}
