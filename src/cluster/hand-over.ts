import { isObject, tryParseJson } from '../base/index.js'
import type { Store } from '../store/index.js'
import type { Found, Holdings, PartitionEpoch } from './holdings.js'
import type { Notifications } from './notifications.js'
import { type OwnershipView, planDrain, withOwners } from './ownership.js'
import * as partitionRows from './transactions/cluster-partitions.js'
import { type Gained, type Incarnation, type LetGo, PARTITIONS, type Peer } from './types.js'

/** A node gives partitions away at most this often, to balance. */
const BALANCE_EVERY_MS = 1_000
/** In a balance, requests in flight get this long to end; partitions that are busy then stay. */
const BALANCE_GRACE_MS = 100
/** In a drain, partitions that become quiet within this time of each other share a transaction. */
const GATHER_MS = 10

/** A version that no announcement reaches. */
const NO_ANNOUNCEMENTS = Number.MAX_SAFE_INTEGER

/** What acts on partitions may be this late to say that it has let go. */
const LATE_MS = 1_000

/** A node was given these partitions. */
const GIVEN = 'cluster.given'

/** A partition that a node was given, in its new epoch, with the notes of the owner before. */
type Given = Gained & PartitionEpoch

/** What handing over needs. */
export interface HandOverDeps {
  readonly store: Store
  readonly holdings: Holdings
  readonly me: () => Incarnation
  /** Whether this life is over, so that it gains nothing any more. */
  readonly isOver: () => boolean
  readonly notifications: Pick<Notifications, 'ask' | 'handle'>
  /** The other nodes. */
  readonly heirs: () => readonly Peer[]
  /** Asks nodes to look now. */
  readonly wake: (nodes: ReadonlySet<Incarnation>) => void
  /** Monotonic time. */
  readonly nowMs: () => number
  readonly pause: (ms: number) => Promise<void>
  /** A hand-over has ended that took this long. */
  readonly onGiven: (partitions: number, tookMs: number) => void
}

/** How a node gives everything up. */
export interface Drain {
  readonly graceMs: number
  /** What it is afterwards. */
  readonly becomes: Exclude<partitionRows.GiverState, 'owner'>
  /** The rows of the last look. They only choose heirs: the transaction checks that those may be given anything. */
  readonly known: OwnershipView | undefined
}

/** Partitions that have let go, and what they left for their next owners. */
interface Quiet {
  readonly partitions: number[]
  readonly notes: Map<number, unknown>
}

/**
 * Hands partitions over: what acts on them lets go, the row gets its notes and its next owner in one statement, and only
 * then another node may own it. The giver tells the heirs, so that they need not find it by a look.
 */
export class HandOver {
  readonly #deps: HandOverDeps
  #isBalancing = false
  #balancedMs = Number.NEGATIVE_INFINITY
  #hasDrained = false
  readonly #telling = new Set<Promise<void>>()
  #turn = 0

  constructor(deps: HandOverDeps) {
    this.#deps = deps
    deps.notifications.handle(GIVEN, (given) => this.gain(readGiven(given)))
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
      const back = await store.run(partitionRows.give, { from: me(), gifts, becomes: 'owner' })
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
   * Changes the owners in the store, and tells the heirs. `unknown`: it may or may not have happened. Then the node acts on
   * none of them until it has read the rows again.
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
      this.#tellHeirs(done, notes)
      return given
    } catch {
      holdings.doubt(gifts)
      return gifts.length === 0 ? [] : 'unknown'
    }
  }

  #tellHeirs(gifts: readonly Omit<partitionRows.Gift, 'notes'>[], notes: ReadonlyMap<number, unknown>): void {
    for (const heir of new Set(gifts.map(({ to }) => to))) {
      const own = gifts.filter(({ to }) => to === heir)
      const given = own.map(({ partition, epoch }) => ({ partition, epoch: epoch + 1, notes: notes.get(partition) }))
      const telling = this.#tell(heir, given).finally(() => this.#telling.delete(telling))
      this.#telling.add(telling)
    }
  }

  /** Resolves when the heir has heard it, or does not answer: then it finds it by a look. Never rejects. */
  async #tell(heir: Incarnation, given: readonly Given[]): Promise<void> {
    const { notifications, heirs, wake } = this.#deps
    const peers = heirs().filter(({ incarnation }) => incarnation === heir)
    const answers = await notifications.ask(peers, GIVEN, given)
    if (answers.length === 0) wake(new Set([heir]))
  }

  /**
   * Gives everything up, each partition when nothing of it is in flight, or after the grace period. Resolves when nothing is
   * owned and the heirs know, when there is nobody to give it to, or after the grace period.
   */
  async drain(drain: Drain): Promise<void> {
    const { holdings, nowMs } = this.#deps
    const endMs = nowMs() + drain.graceMs
    this.#hasDrained = false
    do await this.#drainOnce({ ...drain, graceMs: Math.max(0, endMs - nowMs()) })
    while (
      // A balance that was active may have kept some.
      holdings.owned.length > 0 &&
      nowMs() < endMs
    )
    this.#hasDrained = true
    await Promise.all(this.#telling)
  }

  /** Gives up what it leads, and nothing else. */
  async resign(): Promise<void> {
    await this.#change([], new Map(), new Map(), 'resigned')
  }

  /** Gives what is left after a drain, because there was nobody to give it to. Never rejects. */
  async giveRest(view: OwnershipView): Promise<void> {
    const { holdings } = this.#deps
    // What is still owned has not let go.
    const left = holdings.all.filter((partition) => !holdings.owns(partition))
    if (this.#hasDrained && left.length > 0) await this.#change(left, new Map(), planDrain(view, left))
  }

  /** What is quiet goes at once, in the transaction that gives up the duties; what is busy follows as it becomes quiet. */
  async #drainOnce(drain: Drain): Promise<void> {
    const { holdings, pause, nowMs } = this.#deps
    const startedMs = nowMs()
    const partitions = [...holdings.owned]
    holdings.leave(partitions)
    const { notes, busy } = await this.#letGo(partitions, 0).catch(
      (): LetGo => ({ notes: new Map(), busy: partitions }),
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
    const left = await this.#letGo([partition], graceMs).catch(() => undefined)
    quiet.notes.delete(partition)
    if (left?.notes.has(partition)) quiet.notes.set(partition, left.notes.get(partition))
    quiet.partitions.push(partition)
  }

  /**
   * Gives away what is quiet. Those that nobody has got are quiet again afterwards, while there is time and somebody who may
   * get them. Returns the rows as they are then, as far as this node knows them without a read.
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

/** Reads what a node says that it has given to this one. What is not as expected is left out: a look finds it. */
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
