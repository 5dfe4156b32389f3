import { type Clock, pause } from '../../base/index.js'
import type { Cluster, Gained, PartitionHolder, ReleasedPartitions } from '../../cluster/index.js'
import { partitionOfName } from '../../cluster/key-partition.js'
import type { Logger } from '../../telemetry/index.js'
import { type DueHint, readFlowNotes } from '../peer-messages.js'
import type { PendingRow } from '../transactions/messages.js'
import type { Backlog } from './backlog.js'
import { PAUSE_AFTER_FAILURE_MS } from './damage.js'
import type { Entry, Place } from './entry.js'
import type { FlowControl } from './flow-control.js'
import { Hints } from './hints.js'
import type { StoredLimits } from './stored-limits.js'

/** What the partitions of a dispatcher are built from. */
export interface PartitionsDeps {
  readonly cluster: Cluster
  readonly clock: Clock
  readonly logger: Logger
  readonly flow: FlowControl
  readonly backlog: () => Backlog
  /** Messages that were taken and whose outcome is not committed. */
  readonly unsettled: () => Iterable<Entry>
  readonly limits: StoredLimits
  /** Called when there is more to load or to send. */
  readonly onWork: () => void
}

/**
 * Decides which messages this dispatcher sends: those of its open partitions.
 *
 *   foreign ─ gained ─> arriving ─ limits read, notes applied ─> open ─ release ─> leaving ─ lost ─> foreign
 *                           └──────────────── lost ────────────────┴─────────────────────> foreign
 *
 * A planned hand-over: the previous owner evicts its messages of the partition and waits for their requests in flight.
 * It leaves notes of how many requests the partition's flow-control keys have started in their current periods. Then the
 * partition's row in the store names this node. This node reads the limits of all keys, applies the notes, and loads the
 * messages from the store. So no message is sent twice, and no rate is exceeded. Messages that are committed between the
 * eviction and the load are not missed, because the load finds them in the store.
 *
 * On a server that is alone, all partitions are open and nothing is tracked.
 */
export class Partitions implements PartitionHolder {
  readonly #deps: PartitionsDeps
  readonly #hints: Hints
  readonly #isSingleNode: boolean
  readonly #arriving = new Map<number, Gained>()
  readonly #open = new Set<number>()
  /** Partitions being handed over, each with the previous owner's notes if this node has not opened it. */
  readonly #leaving = new Map<number, unknown>()
  #openList: readonly number[] | undefined
  #isReading = false
  #isStopped = false
  #onSettled: (() => void)[] = []

  constructor(deps: PartitionsDeps) {
    this.#deps = deps
    this.#hints = new Hints({ ...deps, isLeaving: (partition) => this.#leaving.has(partition) })
    this.#isSingleNode = deps.cluster.isSingleNode
    this.#openList = this.#isSingleNode ? undefined : []
  }

  /** Whether this dispatcher sends the messages of a partition. */
  sends(partition: number): boolean {
    return this.#isSingleNode || this.#open.has(partition)
  }

  /** The partitions to read; `undefined` on a server that is alone. */
  get open(): readonly number[] | undefined {
    return this.#openList
  }

  /** Whether a request of a message may start now. */
  mayStart(partition: number): boolean {
    if (this.#isSingleNode) return true
    const { cluster } = this.#deps
    return this.#open.has(partition) && cluster.mayAct() && cluster.owns(partition)
  }

  /** Returns the committed messages that this dispatcher sends. The owners of the others get a hint. */
  own(rows: readonly PendingRow[]): readonly PendingRow[] {
    if (this.#isSingleNode) return rows
    return rows.filter((row) => {
      if (this.#open.has(row.partition)) return true
      // For an arriving partition, the load after its opening brings the message.
      if (!this.#arriving.has(row.partition)) this.#hints.addRow(row)
      return false
    })
  }

  /** A hint of another node: it has published or changed messages, or set limits of keys. */
  async hinted({ partition, places, keys }: DueHint): Promise<void> {
    await this.#deps.limits.read(keys)
    if (this.sends(partition)) this.#deps.backlog().recall(places, 'hint')
    else {
      // The next owner may have read the limits of all keys before these were set.
      this.#hints.addKeys(partition, keys)
      for (const place of places) this.passOn(partition, place)
    }
    this.#deps.onWork()
  }

  /** Passes the next attempt of a message on to the node that owns its partition now. */
  passOn(partition: number, place: Place): void {
    if (!this.#arriving.has(partition)) this.#hints.add(partition, place)
  }

  /** An attempt is settled: waiting calls of `release` check their partitions again. */
  noteSettled(): void {
    if (this.#onSettled.length === 0) return
    for (const look of this.#onSettled) look()
  }

  stop(): void {
    this.#isStopped = true
  }

  gained(partitions: readonly Gained[]): void {
    for (const gained of partitions) {
      this.#close(gained.partition)
      this.#hints.forget(gained.partition)
      this.#arriving.set(gained.partition, gained)
    }
    this.#refresh()
    void this.#openAll()
  }

  async release(partitions: readonly number[], graceMs: number): Promise<ReleasedPartitions> {
    const { flow, clock } = this.#deps
    const notes = new Map<number, unknown>()
    for (const partition of partitions) {
      const unopened = this.#arriving.get(partition)?.notes ?? this.#leaving.get(partition)
      if (unopened !== undefined) notes.set(partition, unopened)
      this.#close(partition)
      this.#leaving.set(partition, unopened)
    }
    this.#refresh()
    const leaving = new Set(partitions)
    this.#deps.backlog().evictPartitions(leaving)
    await this.#settled(leaving, graceMs)
    for (const note of flow.running(clock.now())) {
      const partition = partitionOfName(note.name)
      if (leaving.has(partition)) notes.set(partition, [...readFlowNotes(notes.get(partition)), note])
    }
    return { notes, busy: this.#busy(leaving) }
  }

  lost(partitions: readonly number[]): void {
    for (const partition of partitions) this.#close(partition)
    this.#refresh()
    this.#deps.backlog().evictPartitions(new Set(partitions))
    this.#hints.flushSoon()
  }

  #close(partition: number): void {
    this.#arriving.delete(partition)
    this.#open.delete(partition)
    this.#leaving.delete(partition)
  }

  #refresh(): void {
    this.#openList = [...this.#open]
  }

  #busy(partitions: ReadonlySet<number>): number[] {
    const busy = new Set<number>()
    for (const { partition } of this.#deps.unsettled()) if (partitions.has(partition)) busy.add(partition)
    return [...busy]
  }

  /** Resolves when no message of these partitions is unsettled, or after a time limit. */
  async #settled(partitions: ReadonlySet<number>, graceMs: number): Promise<void> {
    if (this.#busy(partitions).length === 0) return
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.cancel()
        this.#onSettled = this.#onSettled.filter((each) => each !== look)
        resolve()
      }
      const look = (): void => {
        if (this.#busy(partitions).length === 0) end()
      }
      const timer = this.#deps.clock.after(graceMs, end)
      this.#onSettled.push(look)
    })
  }

  /** Opens arriving partitions. Other nodes may have changed limits, so all limits are read first. Never rejects. */
  async #openAll(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    while (this.#arriving.size > 0 && !this.#isStopped) {
      const arriving = [...this.#arriving.values()]
      try {
        await this.#deps.limits.readAll()
        // A partition that was gained again while the limits were read stays in `#arriving`, and the limits are read again.
        this.#openThose(arriving.filter((gained) => this.#arriving.get(gained.partition) === gained))
      } catch (error) {
        if (!this.#isStopped) this.#deps.logger.error('queue_partitions_not_opened', { error })
        await pause(this.#deps.clock, PAUSE_AFTER_FAILURE_MS)
      }
    }
    this.#isReading = false
  }

  #openThose(arrived: readonly Gained[]): void {
    const { flow, clock, onWork } = this.#deps
    const now = clock.now()
    for (const { partition, notes } of arrived) {
      this.#arriving.delete(partition)
      this.#open.add(partition)
      for (const note of readFlowNotes(notes)) flow.resume(note, now)
    }
    this.#refresh()
    this.#deps.backlog().rewind('covered')
    onWork()
  }
}
