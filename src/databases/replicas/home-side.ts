import { pause, type Timer } from '../../base/index.js'
import type { Incarnation } from '../../cluster/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { readRegionsOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import type { StreamTarget } from '../moves/streams.js'
import { nodeOfRegion } from './choice.js'
import type { ReplicasDeps } from './deps.js'
import { Engines } from './engines.js'
import { Member } from './member.js'
import {
  BEAT_EVERY_MS,
  type Beat,
  type BeatAnswer,
  beatAnswerOf,
  type Lease,
  TOPICS,
  type WantedCopy,
} from './messages.js'
import { NodeRegions } from './node-regions.js'

/** Interval of searches, while no node was found, or the chosen one does not answer. */
const SEEK_EVERY_MS = 1_000
/** Time for replicas to serve: as long as an engine may take to start. */
const SERVING_WITHIN_MS = 30_000
const GONE_WITHIN_MS = 3_000
const POLL_MS = 20
/** Maximum copies that begin at a time: each costs the engine a snapshot, and the link the transfer of the data. */
const MAX_COPIES = 4
const NEVER = new Promise<void>(() => undefined)

/** A database of this node with read regions at other nodes. */
interface Wanted {
  readonly row: DatabaseRow
  readonly revision: number
  readonly members: ReadonlyMap<string, Member>
}

/** State of the replica of a read region. */
export interface ReplicaStatus {
  readonly region: string
  readonly isServing: boolean
  /** Bytes behind the primary, up to a second ago. */
  readonly lagBytes: number
  /** Seconds since the last report of its node. */
  readonly heardSecondsAgo: number
}

/** The link to one incarnation of another node. */
interface Link {
  /** Sequence number of the last beat. */
  sequence: number
  /** Sequence number of the last beat that was answered. */
  answered: number
  /** The pending beat. */
  beating: Promise<void> | undefined
  leaving: ReadonlySet<string>
}

/** Makes nodes of the read regions keep copies of this node's databases; see `index.ts`. */
export class HomeSide {
  readonly #deps: ReplicasDeps
  readonly #engines: Engines
  readonly #regions: NodeRegions
  readonly #wanted = new Map<string, Wanted>()
  /** Replicas that are not wanted any more and may still be read. */
  readonly #left = new Set<Member>()
  readonly #links = new Map<Incarnation, Link>()
  readonly #seeking = new Map<Member, Promise<void>>()
  #revisions = 0
  /** Sequence number of the last beat to any node: a new link continues the numbers of the one before it. */
  #sequence = 0
  #timer: Timer | undefined
  #state: 'running' | 'stopped' = 'stopped'

  constructor(deps: ReplicasDeps) {
    this.#deps = deps
    this.#engines = new Engines(deps.fleet)
    this.#regions = new NodeRegions(deps)
    deps.directory.follow({ put: (row) => this.follow(row), remove: (databaseId) => this.#forget(databaseId) })
    deps.cluster.onNodeGone((incarnation) => {
      this.#links.delete(incarnation)
      this.#regions.gone(incarnation)
    })
  }

  start(): void {
    this.#state = 'running'
    this.#tick()
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    await Promise.allSettled([...this.#seeking.values(), ...[...this.#links.values()].map(({ beating }) => beating)])
  }

  /**
   * Called when a database is served here with this row, or is about to have it. Leases given before do not count any more.
   */
  follow(row: DatabaseRow): void {
    const { database_id: databaseId } = row
    const regions = this.regionsOf(row)
    const before = this.#wanted.get(databaseId)
    if (regions.length === 0 && !before) return
    const members = new Map(
      regions.map((region) => [region, before?.members.get(region) ?? new Member(databaseId, region)]),
    )
    this.#leave([...(before?.members.values() ?? [])].filter(({ region }) => !members.has(region)))
    if (regions.length === 0) this.#forget(databaseId)
    else this.#wanted.set(databaseId, { row, revision: ++this.#revisions, members })
  }

  /** The read regions of a database whose replicas other nodes keep. */
  regionsOf(row: DatabaseRow): readonly string[] {
    const { region: own } = this.#deps
    return own === undefined ? [] : readRegionsOf(row).filter((region) => region !== own)
  }

  /** Resolves when the replicas of all read regions serve. @throws HomeportError `region_without_capacity`. */
  async serving(row: DatabaseRow): Promise<void> {
    const endMs = performance.now() + SERVING_WITHIN_MS
    this.follow(row)
    for (const region of this.regionsOf(row)) {
      while (!this.#serves(row.database_id, region)) {
        if (this.#state === 'stopped' || performance.now() > endMs)
          throw new HomeportError('region_without_capacity', { region })
        this.#tick()
        await pause(this.#deps.clock, POLL_MS)
      }
    }
  }

  /** Resolves when no lease counts any more that was given for a database before this call. */
  async withdraw(databaseId: string): Promise<void> {
    const wanted = this.#wanted.get(databaseId)
    if (wanted) this.#wanted.set(databaseId, { ...wanted, revision: ++this.#revisions })
    const left = [...this.#left].filter((member) => member.databaseId === databaseId)
    await Promise.all([...(wanted?.members.values() ?? []), ...left].map((member) => this.#withdrawn(member)))
  }

  /**
   * Called when a node begins to serve clients. Resolves when no lease counts that was given without knowing of that node.
   */
  async joined(incarnation: Incarnation): Promise<void> {
    this.#regions.joined(incarnation)
    await Promise.all([...this.#wanted.keys()].map((databaseId) => this.withdraw(databaseId)))
  }

  /** Resolves when the nodes of a database that this node no longer serves have deleted their copies, or do not answer. */
  async gone(databaseId: string): Promise<void> {
    const endMs = performance.now() + GONE_WITHIN_MS
    await this.withdraw(databaseId)
    for (const incarnation of this.#links.keys()) {
      do await this.#beatNow(incarnation)
      while (this.#links.get(incarnation)?.leaving.has(databaseId) && performance.now() < endMs)
    }
  }

  /** States of the replicas of a database that other nodes keep. Empty while it sleeps. */
  async statuses(databaseId: string): Promise<readonly ReplicaStatus[]> {
    const members = [...(this.#wanted.get(databaseId)?.members.values() ?? [])]
    const place = members.length > 0 ? await this.placeOf(databaseId) : undefined
    if (!place) return []
    return members.map(({ region, report, reportedMs }) => {
      const isServing = report?.state === 'following' && report.replid === place.replid
      return {
        region,
        isServing,
        heardSecondsAgo: Math.floor((performance.now() - reportedMs) / 1000),
        lagBytes: Math.max(0, place.offset - (report?.offset ?? 0)),
      }
    })
  }

  /** Where a stream of a copy leads; undefined: it is refused. */
  streamTargetOf({ databaseId }: { readonly databaseId: string }): StreamTarget | undefined {
    const engine = this.#engines.known(databaseId)
    return engine && this.#isAwake(databaseId) ? { socketPath: engine.socketPath } : undefined
  }

  /** The place of a primary in its history; undefined when this node does not serve it. */
  async placeOf(databaseId: string) {
    const { directory, fleet } = this.#deps
    if (!directory.has(databaseId) || !this.#isAwake(databaseId)) return undefined
    return (await fleet.replicationWith(databaseId)).place()
  }

  #isAwake(databaseId: string): boolean {
    return this.#wanted.has(databaseId) && this.#deps.sleep.isAwake(databaseId)
  }

  /** Keeps members that are no longer wanted, as long as their leases may count. */
  #leave(members: readonly Member[]): void {
    const nowMs = performance.now()
    for (const member of this.#left) if (member.leasedFor(nowMs) === 0) this.#left.delete(member)
    for (const member of members) this.#left.add(member)
  }

  #forget(databaseId: string): void {
    this.#leave([...(this.#wanted.get(databaseId)?.members.values() ?? [])])
    this.#wanted.delete(databaseId)
    this.#engines.forget(databaseId)
  }

  #serves(databaseId: string, region: string): boolean {
    const wanted = this.#wanted.get(databaseId)
    const member = wanted?.members.get(region)
    return member !== undefined && this.#isReady(wanted, member)
  }

  /** Whether a copy has the data of the present engine, and the users and limits of the present row. */
  #isReady(wanted: Wanted | undefined, { databaseId, report, incarnation }: Member): boolean {
    const engine = this.#engines.known(databaseId)
    if (incarnation === undefined || report?.state !== 'following') return false
    if (report.replid !== engine?.replid) this.#engines.doubt(databaseId)
    return report.replid === engine?.replid && report.revision === wanted?.revision
  }

  /** Never rejects. */
  async #withdrawn(member: Member): Promise<void> {
    const { incarnation } = member
    const link = incarnation === undefined ? undefined : this.#links.get(incarnation)
    const before = link?.sequence ?? 0
    for (let leftMs = member.leasedFor(performance.now()); leftMs > 0; leftMs = member.leasedFor(performance.now())) {
      if (link && link.answered > before) return
      const next = incarnation === undefined ? NEVER : this.#beatNow(incarnation)
      await Promise.race([next, pause(this.#deps.clock, leftMs)])
      // When the answer is lost, the lease ends by itself.
      await pause(this.#deps.clock, Math.min(POLL_MS, leftMs))
    }
  }

  #tick(): void {
    if (this.#state !== 'running') return
    this.#timer?.cancel()
    const awake = [...this.#wanted.keys()].filter((databaseId) => this.#isAwake(databaseId))
    const members = awake.flatMap((databaseId) => [...(this.#wanted.get(databaseId)?.members.values() ?? [])])
    for (const databaseId of awake) this.#engines.look(databaseId)
    if (awake.length > 0) this.#regions.look()
    const nowMs = performance.now()
    let copying = members.filter((member) => member.isBeginning(nowMs)).length
    for (const member of members) if (this.#isToSeek(member) && copying++ < MAX_COPIES) this.#seek(member)
    for (const { incarnation } of members) if (incarnation !== undefined) this.#linkTo(incarnation)
    for (const [incarnation, link] of this.#links) if (!link.beating) void this.#beatNow(incarnation)
    this.#timer = this.#deps.clock.after(BEAT_EVERY_MS, () => this.#tick())
  }

  #isToSeek(member: Member): boolean {
    const peer = this.#deps.cluster.peers.find(({ incarnation }) => incarnation === member.incarnation)
    if (!peer) member.incarnation = undefined
    const nowMs = performance.now()
    const isKept = peer !== undefined && peer.state === 'live' && !member.isLost(nowMs)
    return !isKept && !this.#seeking.has(member) && nowMs - member.soughtMs > SEEK_EVERY_MS
  }

  #seek(member: Member): void {
    member.soughtMs = performance.now()
    const found = this.#find(member)
      .catch((error: unknown) => {
        const { databaseId, region } = member
        this.#deps.logger.warn('database_replica_not_placed', { databaseId, region, error })
      })
      .finally(() => this.#seeking.delete(member))
    this.#seeking.set(member, found)
  }

  async #find(member: Member): Promise<void> {
    const { cluster, logger } = this.#deps
    const { databaseId, region } = member
    const row = this.#wanted.get(databaseId)?.row
    const kept = cluster.peers.find(({ incarnation }) => incarnation === member.incarnation)
    const node = row && (await nodeOfRegion(this.#deps, { row, region, except: kept ? [kept.name] : [] }))
    const peer = cluster.peers.find(({ name, state }) => name === node && state === 'live')
    if (!peer || peer.incarnation === member.incarnation) return
    member.moveTo(peer.incarnation)
    this.#linkTo(peer.incarnation)
    logger.info('database_replica_placed', { databaseId, region, node: peer.name })
    void this.#beatNow(peer.incarnation)
  }

  #linkTo(incarnation: Incarnation): Link {
    const link = this.#links.get(incarnation) ?? { sequence: 0, answered: 0, beating: undefined, leaving: new Set() }
    this.#links.set(incarnation, link)
    return link
  }

  /**
   * Sends a beat with the current state, after the pending one. Resolves when the beat is answered or lost. Never rejects.
   */
  async #beatNow(incarnation: Incarnation): Promise<void> {
    await this.#links.get(incarnation)?.beating
    const link = this.#links.get(incarnation)
    if (!link) return
    link.beating ??= this.#beat(incarnation, link).finally(() => (link.beating = undefined))
    await link.beating
  }

  /** Never rejects. */
  async #beat(incarnation: Incarnation, link: Link): Promise<void> {
    const { cluster, node } = this.#deps
    const sequence = ++this.#sequence
    link.sequence = sequence
    const beat: Beat = { source: node, sequence, wanted: this.#wantedOf(incarnation) }
    const [found] = await cluster.ask(TOPICS.beat, beat, incarnation)
    const answer = found && beatAnswerOf(found.answer)
    if (!answer) return
    link.answered = sequence
    link.leaving = new Set(answer.leaving)
    this.#take(answer, incarnation)
    // The node keeps no copies any more, and knows that none is wanted.
    if (beat.wanted.length === 0 && answer.leaving.length === 0) this.#links.delete(incarnation)
  }

  #wantedOf(incarnation: Incarnation): WantedCopy[] {
    return [...this.#wanted].flatMap(([databaseId, wanted]) => {
      if (!this.#isAwake(databaseId)) return []
      const { revision } = wanted
      const password = this.#engines.known(databaseId)?.password
      return [...wanted.members.values()]
        .filter((member) => member.incarnation === incarnation)
        .map((member) => ({
          databaseId,
          region: member.region,
          password,
          revision,
          lease: this.#leaseFor(wanted, member),
        }))
    })
  }

  #leaseFor(wanted: Wanted, member: Member): Lease | undefined {
    const { databaseId } = member
    const { reads, mayServe, isReplicated, directory } = this.#deps
    if (!this.#isReady(wanted, member) || !directory.has(databaseId)) return undefined
    // Clients must not see writes that the standby does not have yet.
    if (!mayServe(databaseId) || isReplicated(databaseId)) return undefined
    const outstanding = [...wanted.members.values()].reduce((sum, one) => sum + one.outstanding, 0)
    const more = reads.allow(databaseId, { here: member.outstanding, everywhere: outstanding })
    return more === undefined
      ? undefined
      : member.lease(more, this.#regions.siblingsIn(member.region, member.incarnation), performance.now())
  }

  #take({ copies, stamp }: BeatAnswer, incarnation: Incarnation): void {
    for (const report of copies) {
      const members = [...(this.#wanted.get(report.databaseId)?.members.values() ?? [])]
      const member = members.find((one) => one.incarnation === incarnation)
      const read = member?.reported(report, stamp)
      if (read && read.reads + read.bytesIn > 0) this.#deps.reads.note(report.databaseId, read)
    }
  }
}
