import { isObject } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import type { ChangeDeps } from '../deps.js'

/** What standbys are built from. */
export interface StandbysDeps
  extends Pick<
    ChangeDeps,
    'store' | 'fleet' | 'clock' | 'logger' | 'plans' | 'directory' | 'sleep' | 'meter' | 'placement' | 'dataDir'
  > {
  /** The name of this node. */
  readonly node: string
  readonly cluster: Pick<Cluster, 'ask' | 'handle' | 'tunnel' | 'peers' | 'serve' | 'mayAct' | 'notify' | 'onNodeGone'>
  /** Begins to serve a database whose home is this node now; resolves when its port is open. */
  readonly take: (databaseId: string) => Promise<void>
  /** Notifies the other nodes that a database has another home. */
  readonly announce: (databaseId: string) => Promise<void>
}

/** The service of the link between nodes that leads to the engine of a home. */
export const STANDBY_SERVICE = 'database-standby'

/** Topics between home and standby. */
export const TOPICS = {
  /** To all: rows of standbys have changed. */
  look: 'standbys.look',
  /** To the standby's node: follow this home, and say how far you are. */
  follow: 'standbys.follow',
  /** To the standby's node: has the copy reached this place? */
  reach: 'standbys.reach',
} as const

/** What a home asks of the node of a standby. */
export interface FollowRequest {
  readonly databaseId: string
  readonly epoch: number
  readonly source: string
  /** Of the replication user of the home's engine; a new one after each start of the home. */
  readonly password: string
  /** Estimated size of the data, for a copy that begins; 0 from an older version. */
  readonly bytes: number
}

/** Reads a request of a home. */
export function followRequestOf(payload: unknown): FollowRequest | undefined {
  if (!isObject(payload)) return undefined
  const { databaseId, epoch, source, password, bytes } = payload
  if (typeof databaseId !== 'string' || typeof epoch !== 'number') return undefined
  if (typeof source !== 'string' || typeof password !== 'string') return undefined
  return { databaseId, epoch, source, password, bytes: typeof bytes === 'number' ? bytes : 0 }
}

/** How far a copy is. */
export type CopyProgress =
  | { readonly kind: 'failed'; readonly problem: string }
  | { readonly kind: 'copying' }
  | { readonly kind: 'following'; readonly replid: string; readonly offset: number }

/** What the standby's node answers. */
export interface FollowAnswer {
  readonly progress: CopyProgress
  /**
   * `given`: the node does not take over within 5 s from now. `none`: it may take over, or another node may have done so.
   */
  readonly promise: 'given' | 'none'
}

/** Reads the answer of the standby's node. */
export function followAnswerOf(answer: unknown): FollowAnswer | undefined {
  if (!isObject(answer)) return undefined
  const progress = copyProgressOf(answer.progress)
  return progress && { progress, promise: answer.promise === 'given' ? 'given' : 'none' }
}

function copyProgressOf(answer: unknown): CopyProgress | undefined {
  if (!isObject(answer)) return undefined
  const { kind, problem, replid, offset } = answer
  if (kind === 'copying') return { kind }
  if (kind === 'failed') return { kind, problem: typeof problem === 'string' ? problem : '' }
  if (kind !== 'following' || typeof replid !== 'string' || typeof offset !== 'number') return undefined
  return { kind, replid, offset }
}

/** A home asks whether a standby has reached a place in the history. */
export interface ReachRequest {
  readonly databaseId: string
  readonly epoch: number
  readonly source: string
  readonly replid: string
  readonly offset: number
}

/** Reads the question of a home. */
export function reachRequestOf(payload: unknown): ReachRequest | undefined {
  if (!isObject(payload)) return undefined
  const { databaseId, epoch, source, replid, offset } = payload
  if (typeof databaseId !== 'string' || typeof epoch !== 'number' || typeof source !== 'string') return undefined
  if (typeof replid !== 'string' || typeof offset !== 'number') return undefined
  return { databaseId, epoch, source, replid, offset }
}

/** Reads the answer to a `ReachRequest`. */
export const reachAnswerOf = (answer: unknown): boolean => isObject(answer) && answer.isThere === true
