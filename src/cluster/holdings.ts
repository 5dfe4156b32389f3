import type { PartitionView } from './ownership.js'
import { type Gained, type Incarnation, PARTITIONS, type PartitionHolder } from './types.js'

/** What a look has found to be given to this node; the notes of the owners before are still to be read. */
export type Arriving = Pick<PartitionView, 'partition' | 'epoch'>

/**
 * The partitions of this node as far as it knows, and the calls of what acts on them. Rows come in any order: one of an
 * older epoch than the known one is stale, such as that of a look that was sent before a change.
 */
export class Holdings {
  #holder: PartitionHolder | undefined
  readonly #epochs = new Array<number>(PARTITIONS).fill(0)
  readonly #owners = new Array<Incarnation | null>(PARTITIONS).fill(null)
  readonly #isMine = new Array<boolean>(PARTITIONS).fill(false)
  /** About to be given away: they get no new messages. */
  readonly #leaving = new Set<number>()
  #owned: readonly number[] = []
  #open: readonly number[] = []
  #turn = 0

  hold(holder: PartitionHolder): void {
    this.#holder = holder
  }

  get holder(): PartitionHolder | undefined {
    return this.#holder
  }

  owns(partition: number): boolean {
    return this.#isMine[partition] === true
  }

  get owned(): readonly number[] {
    return this.#owned
  }

  /** Those that are not about to leave. */
  get staying(): readonly number[] {
    return this.#open
  }

  epochOf(partition: number): number {
    return this.#epochs[partition] ?? 0
  }

  ownerOf(partition: number): Incarnation | null {
    return this.#owners[partition] ?? null
  }

  /** One of the own partitions, in turn; any one while there is none. */
  next(): number {
    this.#turn++
    return this.#open[this.#turn % this.#open.length] ?? this.#turn % PARTITIONS
  }

  /**
   * Takes the rows of a look in. Loses what others own now; returns what others have given to this node.
   * A partition that it lost sight of, because the outcome of a change was unknown, comes back without notes.
   */
  reconcile(me: Incarnation, rows: readonly PartitionView[]): readonly Arriving[] {
    const lost: number[] = []
    const arriving: Arriving[] = []
    for (const { partition, owner, epoch } of rows) {
      const known = this.epochOf(partition)
      if (epoch < known) continue
      this.#owners[partition] = owner
      if (epoch > known && this.owns(partition)) lost.push(partition)
      if (owner !== me) this.#epochs[partition] = epoch
      else if (epoch > known || !this.owns(partition)) arriving.push({ partition, epoch })
    }
    this.lose(lost)
    return arriving
  }

  /** These are this node's from now on, each in its epoch. */
  gain(me: Incarnation, partitions: readonly (Gained & { readonly epoch: number })[]): void {
    const fresh = partitions.filter(({ partition, epoch }) => epoch >= this.epochOf(partition) && !this.owns(partition))
    for (const { partition, epoch } of fresh) {
      this.#epochs[partition] = epoch
      this.#owners[partition] = me
      this.#isMine[partition] = true
      this.#leaving.delete(partition)
    }
    this.#changed()
    if (fresh.length > 0) this.#holder?.gained(fresh.map(({ partition, notes }) => gainedOf(partition, notes)))
  }

  /** These are about to be given away. */
  leave(partitions: readonly number[]): void {
    for (const partition of partitions) this.#leaving.add(partition)
    this.#changed()
  }

  /** These were about to be given away, and stay. */
  keep(partitions: readonly number[], notes: ReadonlyMap<number, unknown>): void {
    const kept = partitions.filter((partition) => this.owns(partition))
    for (const partition of partitions) this.#leaving.delete(partition)
    this.#changed()
    if (kept.length > 0) this.#holder?.gained(kept.map((partition) => gainedOf(partition, notes.get(partition))))
  }

  /** These were given away: from now on another node owns them. */
  gave(partitions: readonly number[], to: ReadonlyMap<number, Incarnation>): void {
    const mine = partitions.filter((partition) => this.owns(partition))
    for (const partition of mine) {
      this.#epochs[partition] = this.epochOf(partition) + 1
      this.#owners[partition] = to.get(partition) ?? null
    }
    this.lose(mine)
  }

  /** These are not this node's any more, or nobody knows. */
  lose(partitions: readonly number[]): void {
    const mine = partitions.filter((partition) => this.owns(partition))
    for (const partition of mine) {
      this.#isMine[partition] = false
      this.#leaving.delete(partition)
    }
    this.#changed()
    if (mine.length > 0) this.#holder?.lost(mine)
  }

  #changed(): void {
    const owned: number[] = []
    for (let partition = 0; partition < PARTITIONS; partition++) if (this.#isMine[partition]) owned.push(partition)
    this.#owned = owned
    this.#open = owned.filter((partition) => !this.#leaving.has(partition))
  }
}

const gainedOf = (partition: number, notes: unknown): Gained =>
  notes === undefined ? { partition } : { partition, notes }
