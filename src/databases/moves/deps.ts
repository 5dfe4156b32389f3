import { isObject } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import type { BackupFiles } from '../backups/files.js'
import type { Changes } from '../changes/changes.js'
import type { ChangeDeps } from '../deps.js'
import type { Homes } from '../homes.js'
import type { Locator } from '../locator.js'
import type { Usage } from '../usage/index.js'

/** What moves are built from. */
export interface MovesDeps
  extends Pick<
    ChangeDeps,
    'store' | 'fleet' | 'clock' | 'logger' | 'plans' | 'placement' | 'directory' | 'sleep' | 'traffic' | 'onServing'
  > {
  /** The name of this node. */
  readonly node: string
  readonly cluster: Pick<Cluster, 'ask' | 'handle' | 'tunnel' | 'peers' | 'serve' | 'isBeingDrained'>
  readonly changes: Pick<Changes, 'holding' | 'inTurn'>
  readonly usage: Pick<Usage, 'handOver' | 'expect'>
  readonly locator: Pick<Locator, 'moved' | 'leaving'>
  readonly homes: Pick<Homes, 'announce'>
  readonly files: BackupFiles
  /** See `regionOf`. */
  readonly only: string | undefined
}

/** Topics between the two nodes of a move. */
export const TOPICS = {
  /** To all: rows of moves have changed. */
  look: 'moves.look',
  /** To the target: copy this database. */
  receive: 'moves.receive',
  /** To the target: how far is it? */
  progress: 'moves.progress',
  /** To the target: it is the home now. */
  take: 'moves.take',
  /** To all others: a database has another home. */
  moved: 'moves.moved',
} as const

/** How far the copy of a database is. */
export type Progress =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly problem: string }
  | { readonly kind: 'copying' }
  | { readonly kind: 'following'; readonly replid: string; readonly offset: number; readonly isLogged: boolean }

/** Reads the answer of the target. */
export function progressOf(answer: unknown): Progress | undefined {
  if (!isObject(answer)) return undefined
  const { kind, problem, replid, offset, isLogged } = answer
  if (kind === 'unknown' || kind === 'copying') return { kind }
  if (kind === 'failed') return { kind, problem: typeof problem === 'string' ? problem : '' }
  if (kind !== 'following' || typeof replid !== 'string' || typeof offset !== 'number') return undefined
  return { kind, replid, offset, isLogged: isLogged === true }
}
