import { tryParseJson } from '../base/index.js'
import type { Store } from '../store/index.js'
import type { Found, Holdings, PartitionEpoch } from './holdings.js'
import { type OwnershipView, planDrain } from './ownership.js'
import * as partitionRows from './transactions/cluster-partitions.js'
import type { Gained, Incarnation, LetGo } from './types.js'

/** In a balance, requests in flight get this long to end; partitions that are busy then stay. */
const BALANCE_GRACE_MS = 100
/** In a drain, partitions that become quiet within this time of each other share a transaction. */
const GATHER_MS = 10

/** What acts on partitions may be this late to say that it has let go. */
const LATE_MS = 1_000

/** What handing over needs. */
export interface HandOverDeps {
  readonly store: Store
  readonly holdings: Holdings
  readonly me: () => Incarnation
  /** Whether this life is over, so that it gains nothing any more. */
  readonly isOver: () => boolean
  /** Asks nodes to look now. */
  readonly wake: (nodes: ReadonlySet<Incarnation>) => void
  /** Monotonic time. */
  readonly nowMs: () => number
  readonly pause: (ms: number) => Promise<void>
  /** A hand-over has ended that took this long. */
  readonly onGiven: (partitions: number, tookMs: number) => void
}

/**
 * Hands partitions over: what acts on them lets go, the row gets its notes and its next owner in one statement, and only
 * then another node may own it.
 */
export class HandOver {
  readonly #deps: HandOverDeps
  #isBalancing = false
  #hasDrained = false
  #turn = 0

  constructor(deps: HandOverDeps) {
    this.#deps = deps
  }

  /** Takes over what others gave, with their notes, and what this node gave away itself with an unknown outcome. */
  async receive({ arriving, doubtful }: Found): Promise<void> {
    const { store, me } = this.#deps
    if (arriving.length > 0) {
      const rows = await store.run(partitionRows.notes, { partitions: arriving.map(({ partition }) => partition) })
      const same = rows.filter((row) => arriving.some((one) => isSame(one, row)))
      this.gain(same.map(({ partition, epoch, notes }) => ({ partition, epoch, notes: notesOf(notes) })))
    }
    if (doubtful.length > 0) {
      const gifts = doubtful.map((each) => ({ ...each, to: me(), notes: null }))
      const back = await store.run(partitionRows.give, { from: me(), gifts })
      const kept = doubtful.filter(({ partition }) => back.includes(partition))
      this.gain(kept.map(({ partition, epoch }) => ({ partition, epoch: epoch + 1 })))
    }
  }

  /** These are this node's from now on, in the store. */
  gain(partitions: readonly (Gained & PartitionEpoch)[]): void {
    if (!this.#deps.isOver()) this.#deps.holdings.gain(this.#deps.me(), partitions)
  }

  /** Gives some partitions to a node. Those with requests in flight stay; the next balance tries others. Never rejects. */
  async balance(count: number, to: Incarnation): Promise<void> {
    const { holdings } = this.#deps
    if (this.#isBalancing) return
    this.#isBalancing = true
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
    const unable = (): LetGo => ({ notes: new Map(), busy: chosen })
    const { notes, busy } = await this.#letGo(chosen, BALANCE_GRACE_MS).catch(unable)
    const quiet = chosen.filter((partition) => !busy.includes(partition))
    const given = await this.#change(quiet, notes, to)
    if (given === 'unknown') return holdings.keep(busy, notes)
    holdings.keep(
      chosen.filter((partition) => !given.includes(partition)),
      notes,
    )
    if (given.length > 0) this.#deps.onGiven(given.length, nowMs() - startedMs)
  }

  async #letGo(partitions: readonly number[], graceMs: number): Promise<LetGo> {
    const { holder } = this.#deps.holdings
    return (await holder?.letGo(partitions, graceMs)) ?? { notes: new Map(), busy: [] }
  }

  /**
   * Changes the owners in the store. `unknown`: it may or may not have happened. Then the node acts on none of them until
   * it has read the rows again.
   */
  async #change(
    partitions: readonly number[],
    notes: ReadonlyMap<number, unknown>,
    to: ReadonlyMap<number, Incarnation>,
  ): Promise<readonly number[] | 'unknown'> {
    const { store, holdings, me, wake } = this.#deps
    const gifts = partitions.flatMap((partition) => {
      const heir = to.get(partition)
      if (heir === undefined || !holdings.has(partition)) return []
      return [{ partition, epoch: holdings.epochOf(partition), to: heir, notes: textOf(notes.get(partition)) }]
    })
    if (gifts.length === 0) return []
    try {
      const given = await store.run(partitionRows.give, { from: me(), gifts })
      holdings.gave(gifts.filter(({ partition }) => given.includes(partition)))
      wake(new Set(gifts.map((gift) => gift.to)))
      return given
    } catch {
      holdings.doubt(gifts)
      return 'unknown'
    }
  }

  /**
   * Gives everything up, each partition when nothing of it is in flight, or after `graceMs`. Resolves when nothing is owned,
   * when there is nobody to give it to, or after `graceMs`.
   * @param view reads the rows again.
   */
  async drain(graceMs: number, view: () => Promise<OwnershipView | undefined>): Promise<void> {
    const { holdings, nowMs } = this.#deps
    const endMs = nowMs() + graceMs
    this.#hasDrained = false
    do await this.#drainOnce(Math.max(0, endMs - nowMs()), view)
    while (
      // A balance that was active may have kept some.
      holdings.owned.length > 0 &&
      nowMs() < endMs
    )
    this.#hasDrained = true
  }

  /** Gives what is left after a drain, because there was nobody to give it to. Never rejects. */
  async giveRest(view: OwnershipView): Promise<void> {
    const { holdings } = this.#deps
    // What is still owned has not let go.
    const left = holdings.all.filter((partition) => !holdings.owns(partition))
    if (this.#hasDrained && left.length > 0) await this.#change(left, new Map(), planDrain(view, left))
  }

  async #drainOnce(graceMs: number, view: () => Promise<OwnershipView | undefined>): Promise<void> {
    const { holdings, pause, nowMs } = this.#deps
    const quiet: number[] = []
    const notes = new Map<number, unknown>()
    const partitions = [...holdings.owned]
    let pending = partitions.length
    holdings.leave(partitions)
    /** Never rejects. */
    const release = async (partition: number): Promise<void> => {
      const left = await this.#letGo([partition], graceMs).catch(() => undefined)
      if (left?.notes.has(partition)) notes.set(partition, left.notes.get(partition))
      pending--
      quiet.push(partition)
    }
    for (const partition of partitions) void release(partition)
    const startedMs = nowMs()
    while (pending > 0 || quiet.length > 0) {
      await pause(GATHER_MS)
      if (nowMs() - startedMs > graceMs + LATE_MS) return
      if (quiet.length === 0) continue
      const ready = quiet.splice(0)
      const seen = await view()
      const to = seen ? planDrain(seen, ready) : new Map<number, Incarnation>()
      const given = await this.#change(ready, notes, to)
      if (given === 'unknown') continue
      if (given.length > 0) this.#deps.onGiven(given.length, nowMs() - startedMs)
      const canTryAgain = (!seen || to.size > 0) && nowMs() - startedMs < graceMs
      if (canTryAgain) quiet.push(...ready.filter((partition) => holdings.has(partition)))
    }
  }
}

const textOf = (notes: unknown): string | null => (notes === undefined ? null : JSON.stringify(notes))

/** The notes of a row; `undefined` if there are none, or if they are not JSON. */
const notesOf = (text: string | null): unknown => (text === null ? undefined : tryParseJson(text))

const isSame = (one: PartitionEpoch, other: PartitionEpoch): boolean =>
  one.partition === other.partition && one.epoch === other.epoch
