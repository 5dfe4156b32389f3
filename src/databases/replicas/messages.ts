import { isObject } from '../../base/index.js'
import type { Incarnation, Moment } from '../../cluster/index.js'

/** The service of the link between nodes that leads from a copy to the engine of its home. */
export const REPLICA_SERVICE = 'database-replica'

/** Topics between a home and the nodes of read regions. */
export const TOPICS = {
  /** To a node of a read region: all copies that this home wants there. */
  beat: 'replicas.beat',
  /** To all: this node begins to serve clients, and may be an additional one of its region. */
  joined: 'replicas.joined',
  /** To the home: the place of a database's primary in its history. */
  place: 'replicas.place',
  /**
   * From the node that keeps a replica to the other nodes of its region: how many answers of the home have you passed on?
   */
  passed: 'replicas.passed',
} as const

/** How often a home beats. */
export const BEAT_EVERY_MS = 250
/**
 * How long a node may answer reads, counted from the stamp in its answer to the home. A home that is cut off serves for 4 s
 * after it was last certain to be the home, and the next home begins after 5 s, when every lease has ended.
 */
export const LEASE_MS = 800

/** What a home allows: reads until `LEASE_MS` after `stamp`, and no more than `ceiling` since the copy began. */
export interface Lease {
  readonly stamp: Moment
  readonly ceiling: number
  /**
   * The other nodes that clients of the read region may use. They are asked what clients have seen through them. Undefined:
   * not known, so a read needs a sync token that says what its client has seen.
   */
  readonly siblings: readonly Incarnation[] | undefined
}

/** A copy that a home wants. */
export interface WantedCopy {
  readonly databaseId: string
  /** The read region. */
  readonly region: string
  /** Of the replication user of the home's engine. Undefined: not known now; the copy continues with the last one. */
  readonly password: string | undefined
  /** Grows with every change of the database at its home. The node then reads the row again. */
  readonly revision: number
  readonly lease: Lease | undefined
}

/** The message of a home to one node. */
export interface Beat {
  /** The home, by name. */
  readonly source: string
  /** Grows with every beat to that node: a beat that arrives after a later one is ignored. */
  readonly sequence: number
  readonly wanted: readonly WantedCopy[]
}

/** Totals of the reads of a copy. */
export interface ReadTotals {
  readonly reads: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** By command. */
  readonly commands: readonly (readonly [name: string, count: number])[]
}

/** State of one copy. */
export interface CopyReport {
  readonly databaseId: string
  /** Identifies the copy. Another copy counts its reads from 0. */
  readonly copyId: string
  readonly state: 'copying' | 'following' | 'failed'
  readonly problem: string
  /** The history that it follows, and how far. */
  readonly replid: string
  readonly offset: number
  /** Revision of the row that it has read. */
  readonly revision: number
  readonly totals: ReadTotals
}

/** The answer to a beat. */
export interface BeatAnswer {
  readonly stamp: Moment
  readonly copies: readonly CopyReport[]
  /** Databases of this home whose copies are being deleted. */
  readonly leaving: readonly string[]
}

/** Reads a beat. */
export function beatOf(payload: unknown): Beat | undefined {
  if (!isObject(payload) || !Array.isArray(payload.wanted)) return undefined
  const { source, sequence } = payload
  if (typeof source !== 'string' || typeof sequence !== 'number') return undefined
  return { source, sequence, wanted: payload.wanted.flatMap((one) => wantedOf(one) ?? []) }
}

function wantedOf(value: unknown): WantedCopy | undefined {
  if (!isObject(value)) return undefined
  const { databaseId, region, password, revision } = value
  if (typeof databaseId !== 'string' || typeof region !== 'string' || typeof revision !== 'number') return undefined
  const known = typeof password === 'string' ? password : undefined
  return { databaseId, region, password: known, revision, lease: leaseOf(value.lease) }
}

function leaseOf(value: unknown): Lease | undefined {
  if (!isObject(value) || typeof value.ceiling !== 'number') return undefined
  const stamp = stampOf(value.stamp)
  return stamp && { stamp, ceiling: value.ceiling, siblings: siblingsOf(value.siblings) }
}

const siblingsOf = (value: unknown): readonly Incarnation[] | undefined =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'number') : undefined

function stampOf(value: unknown): Moment | undefined {
  if (!isObject(value)) return undefined
  const { monotonicMs, wallMs } = value
  return typeof monotonicMs === 'number' && typeof wallMs === 'number' ? { monotonicMs, wallMs } : undefined
}

/** Reads the answer to a beat. */
export function beatAnswerOf(answer: unknown): BeatAnswer | undefined {
  if (!isObject(answer) || !Array.isArray(answer.copies)) return undefined
  const stamp = stampOf(answer.stamp)
  const leaving = Array.isArray(answer.leaving) ? answer.leaving.filter((one) => typeof one === 'string') : []
  return stamp && { stamp, copies: answer.copies.flatMap((one) => reportOf(one) ?? []), leaving }
}

function reportOf(value: unknown): CopyReport | undefined {
  if (!isObject(value)) return undefined
  const { databaseId, copyId, state, problem, replid, offset, revision } = value
  const totals = totalsOf(value.totals)
  if (typeof databaseId !== 'string' || typeof copyId !== 'string' || typeof revision !== 'number') return undefined
  if (state !== 'copying' && state !== 'following' && state !== 'failed') return undefined
  if (typeof problem !== 'string' || typeof replid !== 'string' || typeof offset !== 'number' || !totals)
    return undefined
  return { databaseId, copyId, state, problem, replid, offset, revision, totals }
}

function totalsOf(value: unknown): ReadTotals | undefined {
  if (!isObject(value) || !Array.isArray(value.commands)) return undefined
  const { reads, bytesIn, bytesOut } = value
  if (typeof reads !== 'number' || typeof bytesIn !== 'number' || typeof bytesOut !== 'number') return undefined
  return { reads, bytesIn, bytesOut, commands: value.commands.flatMap((one) => countOf(one) ?? []) }
}

function countOf(value: unknown): [readonly [string, number]] | undefined {
  if (!Array.isArray(value)) return undefined
  const [name, count] = value
  return typeof name === 'string' && typeof count === 'number' ? [[name, count]] : undefined
}

/** The reads since the last report of the same copy. */
export function since(now: ReadTotals, before: ReadTotals | undefined): ReadTotals {
  const known = new Map(before?.commands)
  return {
    reads: now.reads - (before?.reads ?? 0),
    bytesIn: now.bytesIn - (before?.bytesIn ?? 0),
    bytesOut: now.bytesOut - (before?.bytesOut ?? 0),
    commands: now.commands.map(([name, count]) => [name, count - (known.get(name) ?? 0)] as const),
  }
}

/** The question of the node that keeps a replica to another node of the region. */
export interface ForwardedQuestion {
  readonly databaseId: string
  /** Everything by which clients may have asked for the database; see `forwarded-answers.ts`. */
  readonly keys: readonly string[]
}

/** Keys in one question: a database has two for each user. */
const MAX_KEYS = 2_000

/** Reads such a question. */
export function forwardedQuestionOf(payload: unknown): ForwardedQuestion | undefined {
  if (!isObject(payload) || !Array.isArray(payload.keys) || typeof payload.databaseId !== 'string') return undefined
  const keys = payload.keys.slice(0, MAX_KEYS).filter((one) => typeof one === 'string')
  return { databaseId: payload.databaseId, keys }
}

/** Reads the answer to such a question: a number that grows with every answer that was passed on. */
export const forwardedCountOf = (answer: unknown): number | undefined =>
  isObject(answer) && typeof answer.count === 'number' ? answer.count : undefined

/** Reads the answer about the place of a primary. */
export function placeOf(answer: unknown): { readonly replid: string; readonly offset: number } | undefined {
  if (!isObject(answer)) return undefined
  const { replid, offset } = answer
  return typeof replid === 'string' && typeof offset === 'number' ? { replid, offset } : undefined
}
