import type { Incarnation, Moment } from '../../cluster/index.js'
import { type CopyReport, LEASE_MS, type Lease, type ReadTotals, since } from './messages.js'

/** A node that answers does so well within this time. */
const ANSWERS_WITHIN_MS = 5_000
/** A node that is back within this time keeps the replica. */
const LOST_AFTER_MS = 30_000

/** The replica of one read region of a database, as its home knows it. */
export class Member {
  readonly databaseId: string
  readonly region: string
  /** The incarnation of the node that keeps it; undefined: none was found yet. */
  incarnation: Incarnation | undefined
  /** When a node was last looked for, monotonic. */
  soughtMs = Number.NEGATIVE_INFINITY
  report: CopyReport | undefined
  /** When the report arrived, monotonic. */
  reportedMs = 0
  /** When its node last reported no failure, or was chosen, monotonic. */
  goodMs = 0
  /** The stamp in the last answer of the node. */
  stamp: Moment | undefined
  /** When the last lease was sent, monotonic. */
  leasedMs = Number.NEGATIVE_INFINITY
  #ceiling = 0

  constructor(databaseId: string, region: string) {
    this.databaseId = databaseId
    this.region = region
  }

  /** Assigns the replica to another node. */
  moveTo(incarnation: Incarnation): void {
    this.incarnation = incarnation
    this.goodMs = performance.now()
    this.report = undefined
    this.stamp = undefined
    this.#ceiling = 0
  }

  /** Takes a report of its node. @returns the reads since the report before. */
  reported(report: CopyReport, stamp: Moment): ReadTotals | undefined {
    const before = this.report?.copyId === report.copyId ? this.report : undefined
    this.report = report
    this.reportedMs = performance.now()
    if (report.state !== 'failed') this.goodMs = this.reportedMs
    this.stamp = stamp
    if (before) return since(report.totals, before.totals)
    // An earlier incarnation of this node may have counted the reads of this copy so far: they are not counted again.
    this.#ceiling = report.totals.reads
    return undefined
  }

  /** Reads that were allowed and are not reported. */
  get outstanding(): number {
    return Math.max(0, this.#ceiling - (this.report?.totals.reads ?? 0))
  }

  /** Allows `more` reads. Undefined while its node has not answered. */
  lease(more: number, siblings: Lease['siblings'], nowMs: number): Lease | undefined {
    if (!this.stamp) return undefined
    this.#ceiling = Math.max(this.#ceiling, this.report?.totals.reads ?? 0) + more
    this.leasedMs = nowMs
    return { stamp: this.stamp, ceiling: this.#ceiling, siblings }
  }

  /** Whether its node copies the data at the moment. */
  isBeginning(nowMs: number): boolean {
    return (
      this.incarnation !== undefined && this.report?.state !== 'following' && nowMs - this.goodMs < ANSWERS_WITHIN_MS
    )
  }

  /** Whether its node has failed or not answered for so long that another one must be found. */
  isLost(nowMs: number): boolean {
    return nowMs - this.goodMs > LOST_AFTER_MS
  }

  /** How long the last lease may still be used, milliseconds. */
  leasedFor(nowMs: number): number {
    return Math.max(0, this.leasedMs + LEASE_MS - nowMs)
  }
}
