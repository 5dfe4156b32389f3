import type { Duplex } from 'node:stream'
import { isObject } from '../../base/index.js'
import type { EngineEndpoint } from '../../fleet/index.js'
import type { ChangeDeps, ReadControl } from '../deps.js'
import { ServingDirectory, type ServingSettings } from '../directory.js'
import type { DatabaseRow } from '../lifecycle.js'
import type { Moves } from '../moves/index.js'
import { serveStream } from '../moves/streams.js'
import type { Standbys } from '../standbys/index.js'
import type { ReplicasDeps } from './deps.js'
import { type DatabaseLookup, ForwardedAnswers, keyOf } from './forwarded-answers.js'
import { HomeSide, type ReplicaStatus } from './home-side.js'
import { beatOf, forwardedQuestionOf, REPLICA_SERVICE, TOPICS } from './messages.js'
import { NodeSide } from './node-side.js'

/** The replicas of this node's databases at other nodes, and those that this node keeps; see `index.ts`. */
export class Replicas {
  readonly #deps: ReplicasDeps
  readonly #home: HomeSide
  readonly #node: NodeSide
  readonly #passed = new ForwardedAnswers()
  /** The users and limits of databases whose replicas this node keeps. */
  readonly directory: ServingDirectory
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: ReplicasDeps & { readonly dataDir: string; readonly serving: ServingSettings }) {
    this.#deps = deps
    const { cluster, clock } = deps
    this.directory = new ServingDirectory(deps.serving)
    this.#home = new HomeSide(deps)
    this.#node = new NodeSide({ ...deps, copies: this.directory })
    cluster.serve(REPLICA_SERVICE, (stream) => serveStream(stream, clock, (head) => this.#home.streamTargetOf(head)))
    cluster.handle(TOPICS.beat, (payload, incarnation) => {
      const beat = beatOf(payload)
      return beat && this.#state === 'running' ? this.#node.beat(beat, incarnation) : undefined
    })
    cluster.handle(TOPICS.passed, (payload, incarnation) => {
      const question = forwardedQuestionOf(payload)
      return question && this.#passed.answerQuestion(question, incarnation)
    })
    cluster.handle(TOPICS.joined, (_, incarnation) => this.#home.joined(incarnation))
    cluster.handle(TOPICS.place, (payload) =>
      isObject(payload) && this.#state === 'running' ? this.#home.placeOf(String(payload.databaseId)) : undefined,
    )
  }

  /** Resolves when the homes know that this node has clients. */
  async start(): Promise<void> {
    if (this.#state !== 'new') return
    this.#state = 'running'
    await this.#deps.cluster.ask(TOPICS.joined, null)
    if (this.#isStopped()) return
    this.#home.start()
    this.#node.start()
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    await Promise.all([this.#home.stop(), this.#node.stop()])
  }

  /** A function, because the compiler would assume that the state does not change during an `await`. */
  #isStopped(): boolean {
    return this.#state === 'stopped'
  }

  /** Resolves when the replicas of all read regions of a row serve. @throws HomeportError `region_without_capacity`. */
  serving(row: DatabaseRow): Promise<void> {
    return this.#home.serving(row)
  }

  /** The engines have gone back to this row, because a change of its regions failed. */
  follow(row: DatabaseRow): void {
    this.#home.follow(row)
  }

  /** States of the replicas of a database of this node at other nodes. Empty while the database sleeps. */
  statuses(databaseId: string): Promise<readonly ReplicaStatus[]> {
    return this.#home.statuses(databaseId)
  }

  /** Resolves when other nodes answer no reads of a database any more by a lease from before this call. */
  withdraw(databaseId: string): Promise<void> {
    return this.#home.withdraw(databaseId)
  }

  /** Resolves when other nodes have deleted their copies of a database that is deleted here, or do not answer. */
  gone(databaseId: string): Promise<void> {
    return this.#home.gone(databaseId)
  }

  /** Leaves the files of a database to another task of this node. Resolves when no replica uses them. */
  releaseFiles(databaseId: string): Promise<void> {
    return this.#node.releaseFiles(databaseId)
  }

  /** Whether this node answers reads of a database now. Called for each reply of its replica. */
  mayRead(databaseId: string): boolean {
    return this.#node.copyOf(databaseId)?.mayRead(this.#node.now()) ?? false
  }

  /** Takes some of the reads that the home allows; see `ReplicasHere` of the gateway. */
  take(databaseId: string, count: number, seen: 'node' | 'token'): boolean {
    return this.#node.copyOf(databaseId)?.take(count, this.#node.now(), seen) ?? false
  }

  /** Whether clients of the region use no other node; see `SiblingNodes` of the gateway. */
  isOnlyNodeOfRegion(databaseId: string): boolean {
    return this.#node.copyOf(databaseId)?.siblings.areNone ?? true
  }

  /** See `SiblingNodes` of the gateway. */
  askSiblings(databaseId: string, onMore: () => void): Promise<boolean> {
    return this.#node.askSiblings(databaseId, onMore)
  }

  /** An answer of the home of another node is about to be passed to a client. */
  countForwarded(by: DatabaseLookup): void {
    this.#passed.count(keyOf(by))
  }

  /** The other node of the region that keeps the replica of a database. */
  replicaInRegion(by: DatabaseLookup): RegionReplica | undefined {
    const incarnation = this.#passed.replicaNode(keyOf(by))
    const peer = this.#deps.cluster.peers.find((each) => each.incarnation === incarnation)
    if (!peer || incarnation === undefined) return undefined
    const tunnel = async (service: string, ip: string, detail = ''): Promise<Duplex> => {
      try {
        return await this.#deps.cluster.tunnel(peer.name, service, ip, detail)
      } catch (error) {
        this.#passed.forgetNode(incarnation)
        throw error
      }
    }
    return {
      rest: { node: peer.name, connect: (ip) => tunnel('near-rest', ip) },
      connect: ({ ip, port }) =>
        by.kind === 'port'
          ? tunnel('near-port', ip, `${by.databaseId} ${port}`)
          : Promise.reject(new Error('a port is known by the id of its database')),
    }
  }

  /** Counts what was read: commands that were taken, and bytes from and to the client. */
  note(databaseId: string, commands: readonly string[], bytesIn: number, bytesOut: number): void {
    const copy = this.#node.copyOf(databaseId)
    for (const command of commands) copy?.count(command)
    copy?.transferred(bytesIn, bytesOut)
  }

  /** Where the replica of a database is. Rejects while it does not run. */
  async endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly EngineEndpoint[]> {
    const found = await this.#deps.fleet.endpoints(databaseId, signal)
    return found.map((endpoint) => ({ ...endpoint, role: 'replica' }))
  }

  /** The place of the primary of a replica in its history. Rejects when the home does not answer. */
  async primaryPosition(databaseId: string): Promise<{ history: string; offset: number } | undefined> {
    const place = await this.#node.primaryPlace(databaseId)
    return place && { history: place.replid, offset: place.offset }
  }
}

/** A node of the same region that keeps a replica. Both reject when it cannot be reached; then nothing was sent. */
export interface RegionReplica {
  /** For requests over REST. */
  readonly rest: { readonly node: string; connect(ip: string): Promise<Duplex> }
  /** For a client of the port of the database. */
  connect(client: { readonly ip: string; readonly port: number }): Promise<Duplex>
}

/** What the replicas of a server are built from. */
export interface ReplicasSettings
  extends Omit<ReplicasDeps, 'node' | 'cluster' | 'region' | 'reads' | 'mayServe' | 'isReplicated' | 'hasOther'>,
    Pick<ChangeDeps, 'cluster' | 'settings' | 'dataDir' | 'traffic'> {
  readonly serving: ServingSettings
  readonly moves: Moves | undefined
  readonly standbys: Standbys | undefined
}

/** Without a data plane that limits and counts the reads of other nodes, these may make none. */
const NO_READS: ReadControl = { allow: () => undefined, note: () => undefined }

/** The replicas of a node; undefined on a server that is alone. */
export function replicasOf({ cluster, settings, moves, standbys, ...deps }: ReplicasSettings): Replicas | undefined {
  const { node, region } = settings
  if (!cluster || node === undefined) return undefined
  const replicas = new Replicas({
    ...deps,
    cluster,
    node,
    region,
    reads: deps.traffic.reads ?? NO_READS,
    mayServe: (databaseId) => standbys?.mayServe(databaseId) ?? true,
    isReplicated: (databaseId) => standbys?.isReplicated(databaseId) ?? false,
    hasOther: (id) => deps.directory.has(id) || moves?.isReceiving(id) === true || standbys?.keeps(id) === true,
  })
  // Replicas at other nodes could show writes that the standby does not have yet.
  standbys?.beforeWaiting((databaseId) => replicas.withdraw(databaseId))
  for (const one of [moves, standbys]) one?.beforeCopy((databaseId) => replicas.releaseFiles(databaseId))
  return replicas
}
