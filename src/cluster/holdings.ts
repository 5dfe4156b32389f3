import type { PartitionView } from './ownership.js'
import { type Gained, type Incarnation, PARTITIONS, type PartitionHolder } from './types.js'

/** A partition in one of its epochs. */
export type PartitionEpoch = Pick<PartitionView, 'partition' | 'epoch'>

/** Partitions that this node owns by the rows of a look, although it does not hold them. */
export interface Found {
  /** Partitions given by other nodes. The notes of the previous owners are still to be read. */
  readonly arriving: readonly PartitionEpoch[]
  /**
   * Partitions that this node gave away with an unknown outcome. The statement may still be on its way, so the row cannot be
   * relied on until this node has changed its epoch.
   */
  readonly doubtful: readonly PartitionEpoch[]
}

/**
 * The partitions of this node as far as it knows. It calls the partition holder when they change.
 *
 * Rows may arrive in any order. A row with an older epoch than the known one is stale, for example from a look that was sent
 * before a change. But if the newer epoch was already known when the look was sent, the store has lost commits, and its row
 * counts.
 */
export class Holdings {
  #holder: PartitionHolder | undefined
  readonly #epochs = new Array<number>(PARTITIONS).fill(0)
  readonly #owners = new Array<Incarnation | null>(PARTITIONS).fill(null)
  readonly #isMine = new Array<boolean>(PARTITIONS).fill(false)
  /** Partitions about to be given away. They get no new messages. */
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

  /** Whether the store says that this node owns the partition, as far as it knows. */
  has(partition: number): boolean {
    return this.#isMine[partition] === true
  }

  /** The partitions that this node acts on. */
  get owned(): readonly number[] {
    return this.#owned
  }

  /** The partitions that this node owns by the store. */
  get all(): readonly number[] {
    return this.#all
  }

  epochOf(partition: number): number {
    return this.#epochs[partition] ?? 0
  }

  ownerOf(partition: number): Incarnation | null {
    return this.#owners[partition] ?? null
  }

  /** One of this node's partitions, in turn. While it has none, one of another node, which can then be given a hint. */
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
   * Applies the rows of a look: loses the partitions that other nodes own now, and returns
   * those that this node owns but does not hold.
   * @param before the epochs that were known when the look was sent. A row with an older epoch shows that the store has lost
   *   commits, for example by a failover. Default: unknown, so such rows are stale.
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

  /** Whether a row is older than the epoch that this node already knew when it sent the look, and still knows. */
  #isBefore(partition: number, epoch: number, before: readonly number[]): boolean {
    const known = this.epochOf(partition)
    return epoch < known && before[partition] === known
  }

  #hasLost(me: Incarnation, { partition, owner, epoch }: PartitionView, before: readonly number[]): boolean {
    if (!this.has(partition)) return false
    const known = this.epochOf(partition)
    return epoch > known || (epoch === known && owner !== me) || this.#isBefore(partition, epoch, before)
  }

  /** This node owns these partitions from now on, each in a new epoch. A late reply with an old epoch changes nothing. */
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

  /** These partitions are about to be given away. */
  leave(partitions: readonly number[]): void {
    for (const partition of partitions) this.#leaving.add(partition)
    this.#changed()
  }

  /** These partitions were about to be given away, and stay. */
  keep(partitions: readonly number[], notes: ReadonlyMap<number, unknown>): void {
    const kept = partitions.filter((partition) => this.has(partition) && this.#leaving.has(partition))
    for (const partition of partitions) this.#leaving.delete(partition)
    this.#changed()
    if (kept.length > 0) this.#holder?.gained(kept.map((partition) => gainedOf(partition, notes.get(partition))))
  }

  /** These partitions were given away: from now on another node owns them. */
  gave(gifts: readonly (PartitionEpoch & { readonly to: Incarnation })[]): void {
    const mine = gifts.filter((gift) => this.#holds(gift))
    for (const { partition, epoch, to } of mine) {
      this.#epochs[partition] = epoch + 1
      this.#owners[partition] = to
    }
    this.lose(mine.map(({ partition }) => partition))
  }

  /** It is unknown whether these partitions were given away, so this node stops acting on them. */
  doubt(gifts: readonly PartitionEpoch[]): void {
    this.lose(gifts.filter((gift) => this.#holds(gift)).map(({ partition }) => partition))
  }

  #holds({ partition, epoch }: PartitionEpoch): boolean {
    return this.has(partition) && this.epochOf(partition) === epoch
  }

  /** This node no longer owns these partitions. */
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
