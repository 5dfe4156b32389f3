import { pause, type Timer, Turns } from '../../base/index.js'
import type { Incarnation, Moment } from '../../cluster/index.js'
import { engineSpecOf } from '../desired-engine.js'
import { type ServingDirectory, tokensOf } from '../directory.js'
import type { DatabaseRow } from '../life.js'
import { openStream, Relay } from '../moves/streams.js'
import { setAsideOne } from '../set-aside.js'
import * as databases from '../transactions/databases.js'
import { Copy } from './copy.js'
import type { ReplicasDeps } from './deps.js'
import {
  type Beat,
  type BeatAnswer,
  type CopyReport,
  type PassedQuestion,
  passedCountOf,
  placeOf,
  REPLICA_SERVICE,
  TOPICS,
  type WantedCopy,
} from './messages.js'

/** A copy whose home is silent for this long is deleted. */
const FORGET_MS = 30_000
const SWEEP_EVERY_MS = 5_000
/** A copy that failed is begun again after this time. */
const RETRY_MS = 5_000
/** How old the place of a copy that follows may be in a report. */
const PLACE_FOR_MS = 1_000
/** An engine that answers later is reported with its last place. */
const PLACE_WITHIN_MS = 300
const ANNOUNCE_EVERY_MS = 1_000
/** As long as a read waits for its replica. */
const SIBLINGS_WITHIN_MS = 50

/** What the node of a read region needs. */
export interface NodeSideDeps extends ReplicasDeps {
  readonly dataDir: string
  /** The users and limits of the copies that this node keeps. */
  readonly copies: ServingDirectory
}

/** Keeps copies of databases of other nodes in the read region of this node. */
export class NodeSide {
  readonly #deps: NodeSideDeps
  readonly #copies = new Map<string, Copy>()
  /** The last beat of each home, by its name. */
  readonly #heard = new Map<string, { readonly life: Incarnation; readonly sequence: number }>()
  /** What is done with the files of each database, one thing at a time. */
  readonly #work = new Turns()
  #timer: Timer | undefined

  constructor(deps: NodeSideDeps) {
    this.#deps = deps
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

  /** Takes a beat of a home. What it forbids is forbidden before the answer. */
  async beat(beat: Beat, life: Incarnation): Promise<BeatAnswer | undefined> {
    // One that was declared dead may believe for a while that it still is the home, and would end the copy of the new one.
    if (!this.#deps.cluster.peers.some(({ incarnation }) => incarnation === life)) return undefined
    const heard = this.#heard.get(beat.source)
    if (heard && (life < heard.life || (life === heard.life && beat.sequence <= heard.sequence))) return undefined
    this.#heard.set(beat.source, { life, sequence: beat.sequence })
    const wanted = new Map(beat.wanted.map((one) => [one.databaseId, one]))
    for (const copy of this.#copies.values()) {
      if (copy.source === beat.source && !wanted.has(copy.databaseId)) this.#drop(copy)
    }
    for (const one of beat.wanted) this.#follow(one, beat.source, life)
    const own = [...this.#copies.values()].filter((copy) => copy.source === beat.source)
    await Promise.all(own.map((copy) => this.#look(copy)))
    const leaving = this.#work.keys.filter((databaseId) => !this.#copies.has(databaseId))
    return { stamp: this.now(), copies: own.map(reportOf), leaving }
  }

  /** Another task of this node needs the files of a database: resolves when nothing is done with them here. */
  async letGo(databaseId: string): Promise<void> {
    const copy = this.#copies.get(databaseId)
    if (copy) this.#forget(copy)
    await this.#work.idle(databaseId)
  }

  #follow({ databaseId, region, password, revision, lease }: WantedCopy, source: string, life: Incarnation): void {
    const copy = this.#copies.get(databaseId)
    const nowMs = performance.now()
    if (!copy || copy.source !== source || copy.region !== region || (copy.failedMs ?? nowMs) < nowMs - RETRY_MS) {
      if (password !== undefined) this.#begin(new Copy(databaseId, region, source, life), password, revision)
      return
    }
    copy.heardMs = nowMs
    const isKnown = copy.life === life && copy.revision === revision
    copy.allow(isKnown ? lease : undefined)
    if (lease) this.#announce(copy)
    if (this.#work.has(databaseId) || copy.state !== 'connected') return
    const isNew = password !== undefined && password !== copy.password
    if (!isKnown || isNew) this.#queue(copy, () => this.#connect(copy, password ?? copy.password ?? '', life, revision))
  }

  /** The other nodes of the region pass their clients on to this one while they hear of the copy. Without waiting for it. */
  #announce(copy: Copy): void {
    const nowMs = performance.now()
    const siblings = copy.siblings.now
    if (siblings.length === 0 || nowMs - copy.announcedMs < ANNOUNCE_EVERY_MS) return
    copy.announcedMs = nowMs
    void this.#askSiblings(copy, siblings)
  }

  /**
   * Asks the other nodes of the region what they have passed to clients of a database. Resolves to whether all have answered
   * in time.
   * @param onMore called before, if that is more than when they were asked last.
   */
  askSiblings(databaseId: string, onMore: () => void): Promise<boolean> {
    const copy = this.#copies.get(databaseId)
    if (!copy) return Promise.resolve(false)
    const asked = copy.siblings.ask((siblings) => this.#askSiblings(copy, siblings), onMore)
    return Promise.race([asked, pause(this.#deps.clock, SIBLINGS_WITHIN_MS).then(() => false)])
  }

  /** Never rejects. */
  async #askSiblings(
    { databaseId }: Copy,
    siblings: readonly Incarnation[],
  ): Promise<ReadonlyMap<Incarnation, number>> {
    const { cluster, copies } = this.#deps
    const row = copies.rowOf(databaseId)
    const name = copies.find(databaseId)?.serverName
    const keys = [...(row ? tokensOf(row).keys() : []), ...(name === undefined ? [] : [name])]
    const question: PassedQuestion = { databaseId, keys }
    const answers = await Promise.all(siblings.map((life) => cluster.ask(TOPICS.passed, question, life)))
    const counts = answers.flat().map(({ peer, answer }) => [peer.incarnation, passedCountOf(answer)] as const)
    return new Map(counts.flatMap(([life, count]) => (count === undefined ? [] : [[life, count]])))
  }

  #begin(copy: Copy, password: string, revision: number): void {
    const { fleet, hasOther } = this.#deps
    const { databaseId } = copy
    const old = this.#copies.get(databaseId)
    if (old) this.#forget(old)
    copy.heardMs = performance.now()
    this.#copies.set(databaseId, copy)
    this.#queue(copy, async () => {
      if (copy.state === 'over') return
      if (hasOther(databaseId)) throw new Error('this node has the database for another reason')
      await fleet.suspend(databaseId)
      // This node may have been the home before.
      await setAsideOne(this.#deps, databaseId)
      await fleet.remove(databaseId)
      if (!(await fleet.checkSpace())) throw new Error('the disk is full')
      await this.#connect(copy, password, copy.life, revision)
    })
  }

  /** Has the engine follow the home, with the users and limits that the database has now. */
  async #connect(copy: Copy, password: string, life: Incarnation, revision: number): Promise<void> {
    const { store, fleet, cluster, copies } = this.#deps
    const { databaseId, source } = copy
    const row = await store.run(databases.find, { databaseId })
    if (copy.state === 'over') return
    if (!row || row.home !== source) throw new Error('the node that asks is not the home of the database')
    if (copy.relay === undefined || copy.password !== password) {
      const head = { moveId: '', databaseId, epoch: 0 }
      const relay = new Relay(() => openStream(cluster, source, head, REPLICA_SERVICE))
      const before = copy.relay
      Object.assign(copy, { relay, password, port: await relay.listen() })
      before?.close()
      copy.place = { ...copy.place, isLinked: false }
    }
    copies.put(row)
    await fleet.ensure(this.#specOf(copy, row), 'while-loading')
    if (isOver(copy)) return void copy.relay?.close()
    Object.assign(copy, { state: 'connected', life, revision, problem: '' })
  }

  #specOf(copy: Copy, row: DatabaseRow) {
    const { members, ...spec } = engineSpecOf(row, this.#deps.plans)
    const { region, port, password = '' } = copy
    return {
      ...spec,
      members: [{ region, role: 'primary' as const }],
      // It has nothing that the home does not have.
      persistence: 'snapshot' as const,
      data: 'may-begin' as const,
      follows: { port, password },
    }
  }

  /** Never rejects, and takes no longer than an answer may. */
  async #look(copy: Copy): Promise<void> {
    if (copy.state !== 'connected') return
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
    if (copy.state === 'over') return
    const { databaseId, region } = copy
    this.#deps.logger.warn('database_replica_not_kept', { databaseId, region, error })
    copy.relay?.close()
    const problem = `the node ${this.#deps.node} could not copy the data: see its log`
    Object.assign(copy, { state: 'failed', problem, failedMs: performance.now() })
  }
}

/** A call, because the state changes while others are awaited. */
const isOver = ({ state }: Copy): boolean => state === 'over'

function reportOf({ databaseId, id, state, problem, place, revision, totals }: Copy): CopyReport {
  const follows = state === 'connected' && place.isLinked
  const report = { databaseId, copyId: id, problem, replid: place.replid, offset: place.offset, revision, totals }
  return { ...report, state: state === 'failed' ? 'failed' : follows ? 'following' : 'copying' }
}
