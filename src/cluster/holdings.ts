import type { PartitionView } from './ownership.js'
import { type Gained, type Incarnation, PARTITIONS, type PartitionHolder } from './types.js'

/** A partition in one epoch of it. */
export type PartitionEpoch = Pick<PartitionView, 'partition' | 'epoch'>

/** What a look has found to be this node's although it does not hold it. */
export interface Found {
  /** Given by other nodes; the notes of the owners before are still to be read. */
  readonly arriving: readonly PartitionEpoch[]
  /**
   * Given away with an unknown outcome. The statement may still be on its way to the row, so the row says nothing until
   * this node has changed its epoch.
   */
  readonly doubtful: readonly PartitionEpoch[]
}

/**
 * The partitions of this node as far as it knows, and the calls of what acts on them. Rows come in any order: one of an
 * older epoch than the known one is stale, such as that of a look that was sent before a change. What was known before
 * the look was sent is not: then the store has lost commits, and its rows count.
 */
export class Holdings {
  #holder: PartitionHolder | undefined
  readonly #epochs = new Array<number>(PARTITIONS).fill(0)
  readonly #owners = new Array<Incarnation | null>(PARTITIONS).fill(null)
  readonly #isMine = new Array<boolean>(PARTITIONS).fill(false)
  /** About to be given away: they get no new messages. */
  readonly #leaving = new Set<number>()
  #all: readonly number[] = []
  #owned: readonly number[] = []
  #turn = 0

  hold(holder: PartitionHolder): void {
    this.#holder = holder
  }

  get holder(): PartitionHolder | undefined {
    return this.#holder
  }

  /** Whether this node acts on a partition: it has it, and is not about to give it away. */
  owns(partition: number): boolean {
    return this.has(partition) && !this.#leaving.has(partition)
  }

  /** Whether the partition is this node's in the store, as far as it knows. */
  has(partition: number): boolean {
    return this.#isMine[partition] === true
  }

  /** Those that this node acts on. */
  get owned(): readonly number[] {
    return this.#owned
  }

  /** Those that are this node's in the store. */
  get all(): readonly number[] {
    return this.#all
  }

  epochOf(partition: number): number {
    return this.#epochs[partition] ?? 0
  }

  ownerOf(partition: number): Incarnation | null {
    return this.#owners[partition] ?? null
  }

  /** One of the own partitions, in turn; while there is none, one that another node has, so that it can be given a hint. */
  next(): number {
    this.#turn++
    const from = this.#owned.length > 0 ? this.#owned : this.#others
    return from[this.#turn % from.length] ?? this.#turn % PARTITIONS
  }

  get #others(): readonly number[] {
    return EVERY_PARTITION.filter((partition) => !this.has(partition))
  }

  /** The epochs that are known now, by partition. */
  get epochs(): readonly number[] {
    return [...this.#epochs]
  }

  /**
   * Takes the rows of a look in: loses what others own now, and returns what the rows say is this node's.
   * @param before the epochs that were known when the look was sent: a row of an older one says that the store has lost commits,
   *   as a server does that takes over without the last of them. Default: unknown, so such rows are stale.
   */
  reconcile(me: Incarnation, rows: readonly PartitionView[], before: readonly number[] = []): Found {
    const lost = rows.filter((row) => this.#hasLost(me, row, before)).map(({ partition }) => partition)
    const arriving: PartitionEpoch[] = []
    const doubtful: PartitionEpoch[] = []
    for (const { partition, owner, epoch } of rows) {
      if (this.#isBefore(partition, epoch, before)) this.#epochs[partition] = epoch
      const known = this.epochOf(partition)
      if (epoch < known) continue
      this.#owners[partition] = owner
      if (owner !== me) this.#epochs[partition] = epoch
      else if (epoch > known) arriving.push({ partition, epoch })
      else if (!this.has(partition) || lost.includes(partition)) doubtful.push({ partition, epoch })
    }
    this.lose(lost)
    return { arriving, doubtful }
  }

  /** Whether a row is older than what this node knew before it asked for it, and knows still. */
  #isBefore(partition: number, epoch: number, before: readonly number[]): boolean {
    const known = this.epochOf(partition)
    return epoch < known && before[partition] === known
  }

  #hasLost(me: Incarnation, { partition, owner, epoch }: PartitionView, before: readonly number[]): boolean {
    if (!this.has(partition)) return false
    const known = this.epochOf(partition)
    return epoch > known || (epoch === known && owner !== me) || this.#isBefore(partition, epoch, before)
  }

  /** These are this node's from now on, each in a new epoch. An answer that comes late, in an old one, changes nothing. */
  gain(me: Incarnation, partitions: readonly (Gained & PartitionEpoch)[]): void {
    const fresh = partitions.filter(({ partition, epoch }) => epoch > this.epochOf(partition))
    if (fresh.length === 0) return
    for (const { partition, epoch } of fresh) {
      this.#epochs[partition] = epoch
      this.#owners[partition] = me
      this.#isMine[partition] = true
      this.#leaving.delete(partition)
    }
    this.#changed()
    this.#holder?.gained(fresh.map(({ partition, notes }) => gainedOf(partition, notes)))
  }

  /** These are about to be given away. */
  leave(partitions: readonly number[]): void {
    for (const partition of partitions) this.#leaving.add(partition)
    this.#changed()
  }

  /** These were about to be given away, and stay. */
  keep(partitions: readonly number[], notes: ReadonlyMap<number, unknown>): void {
    const kept = partitions.filter((partition) => this.has(partition) && this.#leaving.has(partition))
    for (const partition of partitions) this.#leaving.delete(partition)
    this.#changed()
    if (kept.length > 0) this.#holder?.gained(kept.map((partition) => gainedOf(partition, notes.get(partition))))
  }

  /** These were given away: from now on another node owns them. */
  gave(gifts: readonly (PartitionEpoch & { readonly to: Incarnation })[]): void {
    const mine = gifts.filter((gift) => this.#holds(gift))
    for (const { partition, epoch, to } of mine) {
      this.#epochs[partition] = epoch + 1
      this.#owners[partition] = to
    }
    this.lose(mine.map(({ partition }) => partition))
  }

  /** Nobody knows whether these were given away. */
  doubt(gifts: readonly PartitionEpoch[]): void {
    this.lose(gifts.filter((gift) => this.#holds(gift)).map(({ partition }) => partition))
  }

  #holds({ partition, epoch }: PartitionEpoch): boolean {
    return this.has(partition) && this.epochOf(partition) === epoch
  }

  /** These are not this node's any more. */
  lose(partitions: readonly number[]): void {
    const mine = partitions.filter((partition) => this.has(partition))
    if (mine.length === 0) return
    for (const partition of mine) {
      this.#isMine[partition] = false
      this.#leaving.delete(partition)
    }
    this.#changed()
    this.#holder?.lost(mine)
  }

  #changed(): void {
    this.#all = this.#isMine.flatMap((isMine, partition) => (isMine ? [partition] : []))
    this.#owned = this.#all.filter((partition) => !this.#leaving.has(partition))
  }
}

const gainedOf = (partition: number, notes: unknown): Gained =>
  notes === undefined ? { partition } : { partition, notes }

const EVERY_PARTITION = Array.from({ length: PARTITIONS }, (_, partition) => partition)
