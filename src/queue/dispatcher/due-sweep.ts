import { type Clock, type Timer, yieldToEventLoop } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import { AfterLostCommits, type Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as messagesSweep from '../transactions/messages-sweep.js'
import type { Backlog } from './backlog.js'
import { LAST_SEQ, START } from './coverage.js'
import type { Place } from './entry.js'
import type { StoredLimits } from './stored-limits.js'

/** How often messages that have just become due are compared. */
const SWEEP_EVERY_MS = 2_000
/** How long a message counts as just due. */
const DUE_WINDOW_MS = 15_000
/** After a longer time between two sweeps, everything is compared: a commit may come later than its messages are due. */
const LONGEST_GAP_MS = 10_000
/** The hint of another node comes within 1 s, or is lost. Its clock may be 2 s behind. */
const HINT_MS = 3_000
/** A sweep ends when nothing has happened for this long. Within it, all that memory covered has become due. */
const ACTIVE_MS = 60_000 + DUE_WINDOW_MS
/** How often everything is compared. */
const WALK_EVERY_MS = 5 * 60_000
/** Places of one page. */
const PAGE = 5_000
/** Turns of queues that one sweep looks at. */
const TURNS = 1_000
/** Held messages that one read looks up. */
const HELD_PER_READ = 1_000
/** A message that cannot be loaded, because it is damaged, is not tried more often than this between two walks. */
const MAX_TRIES = 3

/** What the sweep is built from. */
export interface DueSweepDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly backlog: Backlog
  readonly limits: StoredLimits
  /** The partitions of this node; `undefined` on a server that is alone. */
  readonly partitions: () => readonly number[] | undefined
  /** Called when there is something to load, or when limits have changed. */
  readonly onFound: () => void
}

/**
 * Finds what the dispatcher's memory has missed.
 *
 * The caller that commits a message offers it to the dispatcher. If the reply to a commit is lost, nobody does: the message is
 * pending in the store, memory covers its place and does not hold it. Such a message is a stray. The same commit may
 * have ended messages that memory still holds, and changed the limits of flow-control keys.
 *
 * In a cluster, the hint of another node that has published or changed a message may be lost: the same kind of stray. Hints on
 * their way are none, so the sweeps leave out the last 3 s. A node that did not hear anything does not know that anything
 * happens, so its sweeps do not end; after a time without the store they compare everything. They also compare what is due for
 * longer: a message keeps its due time while it waits for its turn in a queue, or is paused, and comes back far from the
 * present. There a stray is what two sweeps miss, one after the other, because the hint may be on its way.
 * A load of strays that has failed is no try: the next sweep compares everything.
 *
 * - After a lost commit, everything is compared: limits, held messages, and all places that memory covers.
 * - Every 2 s, the messages that became due in the last 15 s are compared, while anything happens at all; in a cluster always.
 * - Every 5 minutes, all places that memory covers are compared.
 *
 * The last two also guard against defects: without a fault they never find a stray. Places are read page by page from
 * the index, and no horizon moves, so a backlog of a million delays no new message.
 *
 * A place that a read has seen may be of a commit whose caller is not notified yet. So a sweep waits for all operations
 * that run, looks again, and only then loads the message (`Backlog.recall`), like any other load.
 */
export class DueSweep {
  readonly #deps: DueSweepDeps
  #activeAt = Number.NEGATIVE_INFINITY
  #sweepTimer: Timer | undefined
  #walkTimer: Timer | undefined
  readonly #afterLostCommits: AfterLostCommits
  #work: Promise<void> = Promise.resolve()
  /** Comparisons that run or wait. */
  #waiting = 0
  #isStopped = true
  readonly #tries = new Map<number, number>()
  /** What is due for longer and memory missed at the last sweep; a hint may have been on its way. */
  #missedBefore: readonly Place[] = []
  /** Where the comparison of what is due for longer goes on. */
  #olderAfter: Place = START
  #sweptAt = Number.NEGATIVE_INFINITY
  /** Strays that a sweep has found could not be loaded. */
  #isBehind = false

  constructor(deps: DueSweepDeps) {
    this.#deps = deps
    const recover = () => this.#inTurn(() => this.#recover())
    this.#afterLostCommits = new AfterLostCommits({ ...deps, what: 'due messages', recover })
  }

  start(): void {
    this.#isStopped = false
    this.#afterLostCommits.start()
    this.#setWalkTimer()
    this.#sweptAt = this.#deps.clock.now()
    if (this.#deps.partitions()) this.noteActivity()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const timer of [this.#sweepTimer, this.#walkTimer]) timer?.cancel()
    await Promise.all([this.#afterLostCommits.stop(), this.#work])
  }

  /** Messages have come or gone. */
  noteActivity(): void {
    this.#activeAt = this.#deps.clock.now()
    if (!this.#sweepTimer && !this.#isStopped) this.#setSweepTimer()
  }

  /** A load of strays is over, which did not bring these. */
  straysLoaded(unread: readonly number[] | 'failed'): void {
    if (unread === 'failed') this.#isBehind = true
    else for (const seq of unread) this.#tries.set(seq, (this.#tries.get(seq) ?? 0) + 1)
  }

  #setSweepTimer(): void {
    this.#sweepTimer = this.#deps.clock.after(SWEEP_EVERY_MS, () => {
      const now = this.#deps.clock.now()
      this.#sweepTimer = undefined
      if (now - this.#activeAt > ACTIVE_MS && !this.#deps.partitions()) return
      this.#setSweepTimer()
      if (this.#waiting === 0) this.#compareSoon(() => this.#sweep(now))
    })
  }

  #setWalkTimer(): void {
    this.#walkTimer = this.#deps.clock.after(WALK_EVERY_MS, () => {
      this.#setWalkTimer()
      this.#tries.clear()
      this.#compareSoon(() => this.#walk())
    })
  }

  /** What a lost commit may have changed: limits, held messages, and messages that nobody has offered. */
  async #recover(): Promise<void> {
    const { limits, backlog, onFound } = this.#deps
    this.noteActivity()
    await limits.readAll()
    await this.#dropEnded()
    backlog.rewind('parked')
    await this.#walk()
    onFound()
  }

  /** Runs one comparison after the other. */
  #inTurn(compare: () => Promise<void>): Promise<void> {
    this.#waiting++
    const work = this.#work.then(async () => {
      if (!this.#isStopped) await compare()
    })
    this.#work = work.then(
      () => void this.#waiting--,
      () => void this.#waiting--,
    )
    return work
  }

  /** A comparison that failed is made again the next time. */
  #compareSoon(compare: () => Promise<void>): void {
    this.#inTurn(compare).catch((error: unknown) => {
      // The store closes: the dispatcher stops soon.
      if (!this.#isStopped && !isError(error, 'starting')) this.#deps.logger.warn('queue_sweep_failed', { error })
    })
  }

  /** The messages that have just become due. A page is enough: when more are due, the next sweeps and walks follow. */
  async #sweep(now: number): Promise<void> {
    const partitions = this.#deps.partitions()
    const after = { nextAt: now - DUE_WINDOW_MS, seq: LAST_SEQ }
    const until = { nextAt: partitions ? now - HINT_MS : now, seq: LAST_SEQ }
    // The store was away, and hints may have been lost before.
    const isBehind = this.#isBehind || (partitions !== undefined && now - this.#sweptAt > LONGEST_GAP_MS)
    this.#isBehind = false
    if (isBehind) this.#sweptAt = Number.NEGATIVE_INFINITY
    if (isBehind) await this.#walk()
    else {
      await this.#compare(after, until, 'soon')
      await (partitions ? this.#compareOlder(partitions, after, until) : this.#compareUrgent(after, until))
    }
    this.#sweptAt = now
  }

  /** The messages of this time that a priority has placed earlier. */
  async #compareUrgent(from: Place, until: Place): Promise<void> {
    const missing = this.#deps.backlog.missing(await this.#urgent(from, until))
    if (missing.length > 0) await this.#recall(missing)
  }

  #urgent({ nextAt: from }: Place, { nextAt: until }: Place): Promise<readonly Place[]> {
    const { store, backlog, partitions } = this.#deps
    const { exceptAccounts, exceptLanes } = backlog.covered
    const range = { dueBefore: from, createdAfter: from, createdUntil: until, limit: PAGE, exceptAccounts, exceptLanes }
    return store.run(messagesSweep.urgent, { ...range, partitions: partitions() })
  }

  /**
   * What is due for longer: a page, after which the next sweep goes on. When that is not all, new messages and turns of queues
   * do not wait until their page comes.
   */
  async #compareOlder(partitions: readonly number[], until: Place, createdUntil: Place): Promise<void> {
    if (partitions.length === 0) return
    const { store, backlog } = this.#deps
    if (this.#missedBefore.length > 0) await this.#recall(this.#missedBefore)
    const { exceptAccounts, exceptLanes } = backlog.covered
    const shared = { exceptAccounts, exceptLanes, partitions }
    const after = this.#olderAfter
    const page = await store.run(messagesSweep.places, { ...shared, after, until, limit: PAGE })
    const isWhole = isSame(page.upTo, until)
    this.#olderAfter = isWhole ? START : page.upTo
    const places = [...page.places]
    if (!isWhole || !isSame(after, START)) {
      places.push(...(await this.#urgent(until, createdUntil)))
      places.push(...(await store.run(messagesSweep.turns, { ...shared, dueBefore: until.nextAt, limit: TURNS })))
    }
    this.#missedBefore = backlog.missing(places)
  }

  /** All places that memory covers, in pages. */
  async #walk(): Promise<void> {
    // Hints with the limits of keys may have been lost.
    if (this.#deps.partitions()) await this.#deps.limits.readAll()
    const { upTo: until } = this.#deps.backlog.covered
    for (let after = START; !this.#isStopped; ) {
      const upTo = await this.#compare(after, until, 'in turn')
      if (isSame(upTo, until)) return
      after = upTo
    }
  }

  /** Compares a page. Answers up to which place. */
  async #compare(after: Place, until: Place, turn: 'soon' | 'in turn'): Promise<Place> {
    const { store, backlog } = this.#deps
    const { exceptAccounts, exceptLanes } = backlog.covered
    const partitions = this.#deps.partitions()
    if (partitions?.length === 0) return until
    const read = turn === 'soon' ? messagesSweep.places : messagesSweep.placesInTurn
    const page = await store.run(read, { after, until, limit: PAGE, exceptAccounts, exceptLanes, partitions })
    const suspects = backlog.missing(page.places)
    if (suspects.length > 0) await this.#recall(suspects)
    return page.upTo
  }

  async #recall(suspects: readonly Place[]): Promise<void> {
    const { store, backlog, onFound } = this.#deps
    await store.settled()
    // Callers of the last commits make their offers now.
    await yieldToEventLoop()
    const strays = backlog.missing(suspects).filter(({ seq }) => (this.#tries.get(seq) ?? 0) < MAX_TRIES)
    if (strays.length === 0) return
    backlog.recall(strays, 'sweep')
    onFound()
  }

  /** Held messages that a lost commit has ended must not be sent. */
  async #dropEnded(): Promise<void> {
    const { store, backlog } = this.#deps
    const held = backlog.unsentSeqs
    for (let from = 0; from < held.length; from += HELD_PER_READ) {
      const seqs = held.slice(from, from + HELD_PER_READ)
      const pending = new Set(await store.run(messagesSweep.pendingAmong, { seqs }))
      backlog.dropEnded(seqs.filter((seq) => !pending.has(seq)))
    }
  }
}

const isSame = (one: Place, other: Place): boolean => one.nextAt === other.nextAt && one.seq === other.seq
