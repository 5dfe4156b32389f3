import { pause } from '../../base/index.js'
import type { StreamTarget } from '../moves/streams.js'
import type { PlacedStandby, StandbyNote } from '../transactions/standbys.js'
import { completeUntil, promisedUntil, remember, type Sample } from './complete-until.js'
import { type CopyProgress, type FollowRequest, followAnswerOf, type StandbysDeps, TOPICS } from './deps.js'
import type { Guard } from './guard.js'

/** An engine that has not answered by then is asked again at the next look. */
const ENGINE_WITHIN_MS = 2_000

/** A database of this node that has standbys. */
interface Guarded {
  readonly epoch: number
  readonly socketPath: string
  readonly samples: readonly Sample[]
}

/** The home of databases with standbys: lets them follow, and notes how far they are. */
export class HomeSide {
  readonly #deps: StandbysDeps
  readonly #guard: Guard
  #guarded: ReadonlyMap<string, Guarded> = new Map()

  constructor(deps: StandbysDeps, guard: Guard) {
    this.#deps = deps
    this.#guard = guard
  }

  /** Lets nobody follow any more. */
  stop(): void {
    this.#guarded = new Map()
  }

  /** Where a stream of a standby leads. Undefined: this node is not the home in this epoch, or the engine sleeps. */
  streamTargetOf({
    databaseId,
    epoch,
  }: {
    readonly databaseId: string
    readonly epoch: number
  }): StreamTarget | undefined {
    const guarded = this.#guarded.get(databaseId)
    const isHome = this.#deps.directory.has(databaseId) && guarded?.epoch === epoch
    return isHome && this.#deps.sleep.isAwake(databaseId) ? { socketPath: guarded.socketPath } : undefined
  }

  /** Asks the standbys of this node's databases how far they are. Resolves to the notes to store. */
  async confirm(rows: readonly PlacedStandby[]): Promise<readonly StandbyNote[]> {
    const { node, directory, sleep } = this.#deps
    const own = new Map<string, PlacedStandby[]>()
    for (const row of rows) {
      const { database_id: id, home } = row
      if (home === node && row.node !== node && directory.has(id)) own.set(id, [...(own.get(id) ?? []), row])
    }
    this.#guarded = new Map([...this.#guarded].filter(([databaseId]) => own.has(databaseId)))
    const awake = [...own].filter(([databaseId]) => sleep.isAwake(databaseId))
    return (await Promise.all(awake.map(([databaseId, set]) => this.#confirm(databaseId, set)))).flat()
  }

  /** @param set the standbys of one database. */
  async #confirm(databaseId: string, set: readonly PlacedStandby[]): Promise<StandbyNote[]> {
    try {
      const { clock } = this.#deps
      const late = pause(clock, ENGINE_WITHIN_MS).then(() => undefined)
      const engine = await Promise.race([this.#sample(databaseId, set), late])
      if (engine === undefined) return []
      return await Promise.all(set.map(async (row) => this.#noteOf(row, await this.#ask(row, engine))))
    } catch (error) {
      this.#deps.logger.warn('database_standby_failed', { databaseId, error })
      return []
    }
  }

  /** Remembers the offset of this moment. Resolves to what the nodes of the standbys need to know of the engine. */
  async #sample(databaseId: string, set: readonly PlacedStandby[]): Promise<Pick<FollowRequest, 'password' | 'bytes'>> {
    const { fleet, clock } = this.#deps
    const epoch = set[0]?.now_epoch ?? 1
    const replication = await fleet.replicationWith(databaseId)
    const at = clock.now()
    const { replid, offset } = await replication.position()
    const known = this.#guarded.get(databaseId)
    const samples = remember(known?.epoch === epoch ? known.samples : [], { at, replid, offset })
    this.#guarded = new Map(this.#guarded).set(databaseId, { epoch, socketPath: replication.socketPath, samples })
    // Only a copy that begins needs to know whether it has space.
    const hasBegun = set.every(({ state }) => state === 'following')
    return { password: replication.password, bytes: hasBegun ? 0 : await fleet.usedBytes(databaseId) }
  }

  async #ask(
    { database_id: databaseId, node, now_epoch }: PlacedStandby,
    engine: Pick<FollowRequest, 'password' | 'bytes'>,
  ): Promise<CopyProgress> {
    const { cluster } = this.#deps
    const silent = { kind: 'failed', problem: `the node ${node} does not answer` } as const
    const peer = cluster.peers.find(({ name }) => name === node)
    if (!peer) return silent
    const request: FollowRequest = { databaseId, epoch: now_epoch ?? 1, source: this.#deps.node, ...engine }
    const sent = this.#guard.now()
    const [found] = await cluster.ask(TOPICS.follow, request, peer.incarnation)
    const answer = found && followAnswerOf(found.answer)
    if (answer?.promise === 'given') this.#guard.promised({ databaseId, node }, sent)
    return answer?.progress ?? silent
  }

  #noteOf(row: PlacedStandby, progress: CopyProgress): StandbyNote {
    const { database_id: databaseId, node, now_epoch } = row
    const samples = this.#guarded.get(databaseId)?.samples ?? []
    const now = samples.at(-1)?.at ?? this.#deps.clock.now()
    const known = (until: number | undefined) => promisedUntil({ until, known: row.complete_until, now })
    const note = {
      databaseId,
      node,
      mode: row.mode,
      epoch: now_epoch ?? 1,
      complete_until: known(undefined),
      problem: null,
      home_offset: samples.at(-1)?.offset ?? row.home_offset,
      standby_offset: row.standby_offset,
    }
    const hasFollowed = row.state === 'following' || row.state === 'behind'
    switch (progress.kind) {
      case 'failed':
        return { ...note, state: hasFollowed ? 'behind' : 'copying', problem: progress.problem }
      case 'copying':
        return { ...note, state: hasFollowed ? 'behind' : 'copying', problem: hasFollowed ? 'it connects again' : null }
      case 'following': {
        const until = completeUntil(samples, progress)
        if (until === undefined && !hasFollowed) return { ...note, state: 'copying' }
        return { ...note, state: 'following', complete_until: known(until), standby_offset: progress.offset }
      }
      default:
        return progress satisfies never
    }
  }
}
