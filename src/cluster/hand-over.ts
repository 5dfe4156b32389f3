import { isObject, tryParseJson } from '../base/index.js'
import type { Store } from '../store/index.js'
import type { Found, Holdings, PartitionEpoch } from './holdings.js'
import type { Notifications } from './notifications.js'
import { type OwnershipView, planDrain, withOwners } from './ownership.js'
import * as partitionRows from './transactions/cluster-partitions.js'
import { type Gained, type Incarnation, PARTITIONS, type Peer, type ReleasedPartitions } from './types.js'

/** A node gives partitions away at most this often, to balance. */
const BALANCE_EVERY_MS = 1_000
/** In a balance, requests in flight have this long to end. Partitions that are still busy then stay. */
const BALANCE_GRACE_MS = 100
/** In a drain, partitions that become quiet within this time share a transaction. */
const GATHER_MS = 10

/** A version that no announcement reaches. */
const NO_ANNOUNCEMENTS = Number.MAX_SAFE_INTEGER

/** The partition holder may confirm this much later than its grace period that it has let go. */
const LATE_MS = 1_000

/** Topic: the receiving node was given these partitions. */
const GIVEN = 'cluster.given'

/** A partition that a node was given, in its new epoch, with the notes of the previous owner. */
type Given = Gained & PartitionEpoch

/** What `HandOver` is built from. */
export interface HandOverDeps {
  readonly store: Store
  readonly holdings: Holdings
  readonly me: () => Incarnation
  /** Whether this incarnation is over, so that it must not gain partitions. */
  readonly isOver: () => boolean
  readonly notifications: Pick<Notifications, 'ask' | 'handle'>
  /** The other nodes. */
  readonly heirs: () => readonly Peer[]
  /** Asks nodes to look now. */
  readonly wake: (nodes: ReadonlySet<Incarnation>) => void
  /** Monotonic time. */
  readonly nowMs: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Called when a hand-over of this many partitions has ended, with its duration. */
  readonly onGiven: (partitions: number, tookMs: number) => void
}

/** How a node gives up all partitions. */
export interface Drain {
  readonly graceMs: number
  /** The state of the node afterwards. */
  readonly becomes: Exclude<partitionRows.GiverState, 'owner'>
  /**
   * The rows of the last look. They only serve to choose heirs: the transaction
   * checks that the heirs may get partitions.
   */
  readonly known: OwnershipView | undefined
}

/** Partitions without requests in flight, and the notes for their next owners. */
interface Quiet {
  readonly partitions: number[]
  readonly notes: Map<number, unknown>
}

/**
 * Hands partitions over. First the partition holder of this node lets go. Then one statement writes the notes and the next
 * owner into the row; only from then on another node owns the partition. Finally this node notifies the heirs, so that they
 * need not wait for their next look.
 */
export class HandOver {
  readonly #deps: HandOverDeps
  #isBalancing = false
  #balancedMs = Number.NEGATIVE_INFINITY
  #hasDrained = false
  readonly #notifying = new Set<Promise<void>>()
  #turn = 0

  constructor(deps: HandOverDeps) {
    this.#deps = deps
    deps.notifications.handle(GIVEN, (given) => this.gain(readGiven(given)))
  }

  /**
   * Takes over partitions that other nodes gave, with their notes, and reclaims
   * those given away with an unknown outcome.
   */
  async receive({ arriving, doubtful }: Found): Promise<void> {
    const { store, me } = this.#deps
    if (arriving.length > 0) {
      const rows = await store.run(partitionRows.notes, { partitions: arriving.map(({ partition }) => partition) })
      const same = rows.filter((row) => arriving.some((one) => isSame(one, row)))
      this.gain(same.map(({ partition, epoch, notes }) => ({ partition, epoch, notes: notesOf(notes) })))
    }
    if (doubtful.length > 0) {
      const gifts = doubtful.map((each) => ({ ...each, to: me(), notes: null }))
      const back = await store.run(partitionRows.give, { from: me(), gifts, becomes: 'owner' })
      const kept = doubtful.filter(({ partition }) => back.includes(partition))
      this.gain(kept.map(({ partition, epoch }) => ({ partition, epoch: epoch + 1 })))
    }
  }

  /** This node owns these partitions from now on. The store already says so. */
  gain(partitions: readonly (Gained & PartitionEpoch)[]): void {
    if (!this.#deps.isOver()) this.#deps.holdings.gain(this.#deps.me(), partitions)
  }

  /**
   * Gives some partitions to a node. Partitions with requests in flight stay; the
   * next balance tries others. Never rejects.
   */
  async balance(count: number, to: Incarnation): Promise<void> {
    const { holdings, nowMs } = this.#deps
    if (this.#isBalancing || nowMs() - this.#balancedMs < BALANCE_EVERY_MS) return
    this.#isBalancing = true
    this.#balancedMs = nowMs()
    const all = holdings.owned
    const chosen = Array.from({ length: Math.min(count, all.length) }, () => all[this.#turn++ % all.length] ?? 0)
    try {
      await this.#give(chosen, new Map(chosen.map((partition) => [partition, to])))
    } finally {
      this.#isBalancing = false
    }
  }

  async #give(chosen: readonly number[], to: ReadonlyMap<number, Incarnation>): Promise<void> {
    const { holdings, nowMs } = this.#deps
    const startedMs = nowMs()
    holdings.leave(chosen)
    const unable = (): ReleasedPartitions => ({ notes: new Map(), busy: chosen })
    const { notes, busy } = await this.#releaseByHolder(chosen, BALANCE_GRACE_MS).catch(unable)
    const quiet = chosen.filter((partition) => !busy.includes(partition))
    const given = await this.#change(quiet, notes, to)
    if (given === 'unknown') return holdings.keep(busy, notes)
    holdings.keep(
      chosen.filter((partition) => !given.includes(partition)),
      notes,
    )
    if (given.length > 0) this.#deps.onGiven(given.length, nowMs() - startedMs)
  }

  async #releaseByHolder(partitions: readonly number[], graceMs: number): Promise<ReleasedPartitions> {
    const { holder } = this.#deps.holdings
    return (await holder?.release(partitions, graceMs)) ?? { notes: new Map(), busy: [] }
  }

  /**
   * Changes the owners in the store and notifies the heirs. Returns the partitions that were given.
   * `unknown`: the outcome of the transaction is unknown, so the node acts on none of these
   * partitions until it has read the rows again.
   */
  async #change(
    partitions: readonly number[],
    notes: ReadonlyMap<number, unknown>,
    to: ReadonlyMap<number, Incarnation>,
    becomes: partitionRows.GiverState = 'owner',
  ): Promise<readonly number[] | 'unknown'> {
    const { store, holdings, me } = this.#deps
    const gifts = partitions.flatMap((partition) => {
      const heir = to.get(partition)
      if (heir === undefined || !holdings.has(partition)) return []
      return [{ partition, epoch: holdings.epochOf(partition), to: heir, notes: textOf(notes.get(partition)) }]
    })
    if (gifts.length === 0 && becomes === 'owner') return []
    try {
      const given = await store.run(partitionRows.give, { from: me(), gifts, becomes })
      const done = gifts.filter(({ partition }) => given.includes(partition))
      holdings.gave(done)
      this.#notifyHeirs(done, notes)
      return given
    } catch {
      holdings.doubt(gifts)
      return gifts.length === 0 ? [] : 'unknown'
    }
  }

  #notifyHeirs(gifts: readonly Omit<partitionRows.Gift, 'notes'>[], notes: ReadonlyMap<number, unknown>): void {
    for (const heir of new Set(gifts.map(({ to }) => to))) {
      const own = gifts.filter(({ to }) => to === heir)
      const given = own.map(({ partition, epoch }) => ({ partition, epoch: epoch + 1, notes: notes.get(partition) }))
      const notifying = this.#notify(heir, given).finally(() => this.#notifying.delete(notifying))
      this.#notifying.add(notifying)
    }
  }

  /** Resolves when the heir has confirmed, or does not answer; then its next look finds the partitions. Never rejects. */
  async #notify(heir: Incarnation, given: readonly Given[]): Promise<void> {
    const { notifications, heirs, wake } = this.#deps
    const peers = heirs().filter(({ incarnation }) => incarnation === heir)
    const answers = await notifications.ask(peers, GIVEN, given)
    if (answers.length === 0) wake(new Set([heir]))
  }

  /**
   * Gives up all partitions, each when it has no requests in flight, or after the grace period. Resolves when this node owns
   * nothing and the heirs know, when there is no heir, or after the grace period.
   */
  async drain(drain: Drain): Promise<void> {
    const { holdings, nowMs } = this.#deps
    const endMs = nowMs() + drain.graceMs
    this.#hasDrained = false
    do await this.#drainOnce({ ...drain, graceMs: Math.max(0, endMs - nowMs()) })
    while (
      // A balance that was active may have kept some partitions.
      holdings.owned.length > 0 &&
      nowMs() < endMs
    )
    this.#hasDrained = true
    await Promise.all(this.#notifying)
  }

  /** Gives up the leadership, and nothing else. */
  async resign(): Promise<void> {
    await this.#change([], new Map(), new Map(), 'resigned')
  }

  /** Gives away the partitions that are left after a drain because there was no heir. Never rejects. */
  async giveRest(view: OwnershipView): Promise<void> {
    const { holdings } = this.#deps
    // The holder has not let go of partitions that are still owned.
    const left = holdings.all.filter((partition) => !holdings.owns(partition))
    if (this.#hasDrained && left.length > 0) await this.#change(left, new Map(), planDrain(view, left))
  }

  /**
   * Gives quiet partitions away at once, in the transaction that also gives up the duties. Busy partitions follow as they
   * become quiet.
   */
  async #drainOnce(drain: Drain): Promise<void> {
    const { holdings, pause, nowMs } = this.#deps
    const startedMs = nowMs()
    const partitions = [...holdings.owned]
    holdings.leave(partitions)
    const { notes, busy } = await this.#releaseByHolder(partitions, 0).catch(
      (): ReleasedPartitions => ({ notes: new Map(), busy: partitions }),
    )
    const quiet: Quiet = { partitions: partitions.filter((each) => !busy.includes(each)), notes: new Map(notes) }
    let pending = busy.length
    for (const partition of busy) {
      void this.#release(partition, drain.graceMs, quiet).finally(() => pending--)
    }
    let view = await this.#giveQuiet(quiet, drain, startedMs, drain.known)
    while (pending > 0 || quiet.partitions.length > 0) {
      await pause(GATHER_MS)
      if (nowMs() - startedMs > drain.graceMs + LATE_MS) return
      if (quiet.partitions.length > 0) view = await this.#giveQuiet(quiet, drain, startedMs, view)
    }
  }

  /** Never rejects. */
  async #release(partition: number, graceMs: number, quiet: Quiet): Promise<void> {
    const left = await this.#releaseByHolder([partition], graceMs).catch(() => undefined)
    quiet.notes.delete(partition)
    if (left?.notes.has(partition)) quiet.notes.set(partition, left.notes.get(partition))
    quiet.partitions.push(partition)
  }

  /**
   * Gives quiet partitions away. Partitions that no heir got are put back into `quiet`, while there is time and an heir.
   * Returns the rows after the change, if this node knows them without another read.
   */
  async #giveQuiet(
    quiet: Quiet,
    { becomes, graceMs }: Drain,
    startedMs: number,
    known: OwnershipView | undefined,
  ): Promise<OwnershipView | undefined> {
    const { holdings, nowMs, onGiven } = this.#deps
    const ready = quiet.partitions.splice(0)
    let seen = known
    let to = seen ? planDrain(seen, ready) : new Map<number, Incarnation>()
    if (to.size < ready.length) {
      seen = await this.#read()
      to = seen ? planDrain(seen, ready) : to
    }
    const given = await this.#change(ready, quiet.notes, to, becomes)
    if (given === 'unknown') return undefined
    if (given.length > 0) onGiven(given.length, nowMs() - startedMs)
    const left = ready.filter((partition) => holdings.has(partition))
    const canTryAgain = (!seen || to.size > 0) && nowMs() - startedMs < graceMs
    if (canTryAgain) quiet.partitions.push(...left)
    return seen && left.length === 0 ? withOwners(seen, to) : undefined
  }

  /** Never rejects. */
  async #read(): Promise<OwnershipView | undefined> {
    const { store, me } = this.#deps
    const seen = await store.run(partitionRows.look, { seen: NO_ANNOUNCEMENTS }).catch(() => undefined)
    return seen && { ...seen, me: me() }
  }
}

const textOf = (notes: unknown): string | null => (notes === undefined ? null : JSON.stringify(notes))

/** The notes of a row; `undefined` if there are none, or if they are not JSON. */
const notesOf = (text: string | null): unknown => (text === null ? undefined : tryParseJson(text))

const isSame = (one: PartitionEpoch, other: PartitionEpoch): boolean =>
  one.partition === other.partition && one.epoch === other.epoch

/** Reads the payload of `GIVEN`. Malformed entries are left out; a look finds their partitions. */
function readGiven(payload: unknown): readonly Given[] {
  const list: readonly unknown[] = Array.isArray(payload) ? payload : []
  return list.flatMap((each) => {
    const { partition, epoch, notes } = isObject(each) ? each : {}
    if (!isPartition(partition) || !Number.isSafeInteger(epoch)) return []
    return [{ partition, epoch: Number(epoch), ...(notes !== undefined && { notes }) }]
  })
}

const isPartition = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < PARTITIONS
