import { yieldToEventLoop } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import * as messagesSweep from '../transactions/messages-sweep.js'
import type { Backlog } from './backlog.js'
import { LAST_SEQ, START } from './coverage.js'
import type { Place } from './entry.js'
import type { StoredLimits } from './stored-limits.js'

/** How long a message counts as just due. */
export const DUE_WINDOW_MS = 15_000
/** The hint of another node comes within 1 s, or is lost. Its clock may be 2 s behind. */
const HINT_MS = 3_000
/** Places of one page. */
const PAGE = 5_000
/** Turns of queues that one sweep looks at. */
const TURNS = 1_000
/** Held messages that one read looks up. */
const HELD_PER_READ = 1_000
/** A message that cannot be loaded, because it is damaged, is not tried more often than this between two walks. */
const MAX_TRIES = 3

/** What a comparison is built from. */
export interface DueComparisonDeps {
  readonly store: Store
  readonly backlog: Backlog
  readonly limits: StoredLimits
  /** The partitions of this node; `undefined` on a server that is alone. */
  readonly partitions: () => readonly number[] | undefined
  /** Called when there is something to load. */
  readonly onFound: () => void
}

/**
 * Compares pending messages of the store with those in memory, and has strays loaded, of which memory covers the place.
 *
 * A place that a read has seen may be of a commit whose caller is not notified yet. So a comparison waits for all operations
 * that run, looks again, and only then loads the message (`Backlog.recall`), like any other load. Places are read page by
 * page from the index, and no horizon moves, so a backlog of a million delays no new message.
 */
export class DueComparison {
  readonly #deps: DueComparisonDeps
  /** How often messages were found and did not come, by their numbers. */
  readonly #tries = new Map<number, number>()
  /** What is due for longer and memory missed at the last sweep; a hint may have been on its way. */
  #missedBefore: readonly Place[] = []
  /** Where the comparison of what is due for longer goes on. */
  #olderAfter: Place = START

  constructor(deps: DueComparisonDeps) {
    this.#deps = deps
  }

  /** A load did not bring these strays. */
  noteUnread(seqs: readonly number[]): void {
    for (const seq of seqs) this.#tries.set(seq, (this.#tries.get(seq) ?? 0) + 1)
  }

  /** Messages that could not be loaded are tried again. */
  forgetTries(): void {
    this.#tries.clear()
  }

  /**
   * The messages that have just become due. A page is enough: when more are due, the next sweeps and walks follow. In a cluster
   * also what is due for longer: a message keeps its due time while it waits for its turn in a queue, or is paused, and comes
   * back far from the present. There a stray is what two sweeps miss, one after the other, because the hint may be on its way.
   */
  async recent(now: number): Promise<void> {
    const partitions = this.#deps.partitions()
    const after = { nextAt: now - DUE_WINDOW_MS, seq: LAST_SEQ }
    // Hints on their way are no strays.
    const until = { nextAt: partitions ? now - HINT_MS : now, seq: LAST_SEQ }
    await this.#page(after, until, messagesSweep.places)
    await (partitions ? this.#older(partitions, after, until) : this.#urgent(after, until))
  }

  /** All places that memory covers, in pages. */
  async all(goesOn: () => boolean): Promise<void> {
    // Hints with the limits of keys may have been lost.
    if (this.#deps.partitions()) await this.#deps.limits.readAll()
    const { upTo: until } = this.#deps.backlog.covered
    for (let after = START; goesOn(); ) {
      const upTo = await this.#page(after, until, messagesSweep.placesInTurn)
      if (isSame(upTo, until)) return
      after = upTo
    }
  }

  /** Held messages that a lost commit has ended must not be sent. */
  async dropEnded(): Promise<void> {
    const { store, backlog } = this.#deps
    const held = backlog.unsentSeqs
    for (let from = 0; from < held.length; from += HELD_PER_READ) {
      const seqs = held.slice(from, from + HELD_PER_READ)
      const pending = new Set(await store.run(messagesSweep.pendingAmong, { seqs }))
      backlog.dropEnded(seqs.filter((seq) => !pending.has(seq)))
    }
  }

  /** Answers up to which place it has compared. */
  async #page(
    after: Place,
    until: Place,
    read: typeof messagesSweep.places | typeof messagesSweep.placesInTurn,
  ): Promise<Place> {
    const { store, backlog } = this.#deps
    const { exceptAccounts, exceptLanes } = backlog.covered
    const partitions = this.#deps.partitions()
    if (partitions?.length === 0) return until
    const page = await store.run(read, { after, until, limit: PAGE, exceptAccounts, exceptLanes, partitions })
    await this.#recall(backlog.missing(page.places))
    return page.upTo
  }

  /** The messages of this time that a priority has placed earlier. */
  async #urgent(from: Place, until: Place): Promise<void> {
    await this.#recall(this.#deps.backlog.missing(await this.#urgentPlaces(from, until)))
  }

  #urgentPlaces({ nextAt: from }: Place, { nextAt: until }: Place): Promise<readonly Place[]> {
    const { store, backlog, partitions } = this.#deps
    const { exceptAccounts, exceptLanes } = backlog.covered
    const range = { dueBefore: from, createdAfter: from, createdUntil: until, limit: PAGE, exceptAccounts, exceptLanes }
    return store.run(messagesSweep.urgent, { ...range, partitions: partitions() })
  }

  /**
   * What is due for longer: a page, after which the next sweep goes on. When that is not all, new messages and turns of queues
   * do not wait until their page comes.
   */
  async #older(partitions: readonly number[], until: Place, createdUntil: Place): Promise<void> {
    if (partitions.length === 0) return
    const { store, backlog } = this.#deps
    await this.#recall(this.#missedBefore)
    const { exceptAccounts, exceptLanes } = backlog.covered
    const shared = { exceptAccounts, exceptLanes, partitions }
    const after = this.#olderAfter
    const page = await store.run(messagesSweep.places, { ...shared, after, until, limit: PAGE })
    const isWhole = isSame(page.upTo, until)
    this.#olderAfter = isWhole ? START : page.upTo
    const places = [...page.places]
    if (!isWhole || !isSame(after, START)) {
      places.push(...(await this.#urgentPlaces(until, createdUntil)))
      places.push(...(await store.run(messagesSweep.turns, { ...shared, dueBefore: until.nextAt, limit: TURNS })))
    }
    this.#missedBefore = backlog.missing(places)
  }

  /** Loads those of these suspects that memory still misses. */
  async #recall(suspects: readonly Place[]): Promise<void> {
    if (suspects.length === 0) return
    const { store, backlog, onFound } = this.#deps
    await store.settled()
    // Callers of the last commits make their offers now.
    await yieldToEventLoop()
    const strays = backlog.missing(suspects).filter(({ seq }) => (this.#tries.get(seq) ?? 0) < MAX_TRIES)
    if (strays.length === 0) return
    backlog.recall(strays, 'sweep')
    onFound()
  }
}

const isSame = (one: Place, other: Place): boolean => one.nextAt === other.nextAt && one.seq === other.seq
