import { yieldToEventLoop } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import * as messagesSweep from '../transactions/messages-sweep.js'
import type { Backlog } from './backlog.js'
import { LAST_SEQ, START } from './coverage.js'
import type { Place } from './entry.js'
import type { StoredLimits } from './stored-limits.js'

/** How long a message counts as just due. */
export const DUE_WINDOW_MS = 15_000
/** The hint of another node arrives within 1 s or is lost, and the node's clock may be 2 s behind. */
const HINT_MS = 3_000
/** Places per page. */
const PAGE = 5_000
/** Turns of queues that one sweep compares. */
const TURNS = 1_000
/** Held messages that one read looks up. */
const HELD_PER_READ = 1_000
/** Between two walks, a damaged message that cannot be loaded is tried at most this many times. */
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
 * Compares the pending messages of the store with those in memory, and loads strays: messages whose place
 * memory covers but that it does not hold.
 *
 * A read may see a commit whose caller has not been notified yet and will still offer the message. So a comparison waits
 * until all running operations of the store have ended, checks again, and only then loads the message
 * (`Backlog.recall`). Places are read page by page from the index, and no horizon moves, so a backlog of a million
 * messages delays no new message.
 */
export class DueComparison {
  readonly #deps: DueComparisonDeps
  /** How often a stray was found and could not be loaded, by message number. */
  readonly #tries = new Map<number, number>()
  /** Messages due for longer that the last sweep found missing. Their hints may have been on their way. */
  #missedBefore: readonly Place[] = []
  /** Where the next sweep continues to compare messages that are due for longer. */
  #olderAfter: Place = START

  constructor(deps: DueComparisonDeps) {
    this.#deps = deps
  }

  /** Counts a failed try for strays that a load did not bring. */
  countUnread(seqs: readonly number[]): void {
    for (const seq of seqs) this.#tries.set(seq, (this.#tries.get(seq) ?? 0) + 1)
  }

  /** Allows further tries for messages that could not be loaded. */
  forgetTries(): void {
    this.#tries.clear()
  }

  /**
   * Compares the messages that have just become due. One page is enough: later sweeps and walks find the rest.
   *
   * In a cluster it also compares messages that are due for longer: a message keeps its due time while it waits for its
   * turn in a queue or is paused, so it may become sendable long after that time. Such a message counts as a stray only
   * if two sweeps in a row miss it, because its hint may still be on its way.
   */
  async recent(now: number): Promise<void> {
    const partitions = this.#deps.partitions()
    const after = { nextAt: now - DUE_WINDOW_MS, seq: LAST_SEQ }
    // A message whose hint may still be on its way is not a stray.
    const until = { nextAt: partitions ? now - HINT_MS : now, seq: LAST_SEQ }
    await this.#page(after, until, messagesSweep.places)
    await (partitions ? this.#older(partitions, after, until) : this.#urgent(after, until))
  }

  /** Compares all places that memory covers, in pages. */
  async all(shouldContinue: () => boolean): Promise<void> {
    // Hints about changed limits of flow-control keys may have been lost.
    if (this.#deps.partitions()) await this.#deps.limits.readAll()
    const { upTo: until } = this.#deps.backlog.covered
    for (let after = START; shouldContinue(); ) {
      const upTo = await this.#page(after, until, messagesSweep.placesInTurn)
      if (isSame(upTo, until)) return
      after = upTo
    }
  }

  /** Drops held messages that a lost commit has ended, so that they are not sent. */
  async dropEnded(): Promise<void> {
    const { store, backlog } = this.#deps
    const held = backlog.unsentSeqs
    for (let from = 0; from < held.length; from += HELD_PER_READ) {
      const seqs = held.slice(from, from + HELD_PER_READ)
      const pending = new Set(await store.run(messagesSweep.pendingAmong, { seqs }))
      backlog.dropEnded(seqs.filter((seq) => !pending.has(seq)))
    }
  }

  /** Compares one page. Returns the place up to which it has compared. */
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

  /** Compares the messages created in this range whose priority gives them a due time before it. */
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
   * Compares one page of messages that are due for longer; the next sweep continues after it. When one page does not
   * hold them all, new urgent messages and the turns of queues are compared at once, without waiting for their page.
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

  /** Loads the suspects that memory still misses after all running store operations have ended. */
  async #recall(suspects: readonly Place[]): Promise<void> {
    if (suspects.length === 0) return
    const { store, backlog, onFound } = this.#deps
    await store.settled()
    // Lets the callers of the last commits make their offers.
    await yieldToEventLoop()
    const strays = backlog.missing(suspects).filter(({ seq }) => (this.#tries.get(seq) ?? 0) < MAX_TRIES)
    if (strays.length === 0) return
    backlog.recall(strays, 'sweep')
    onFound()
  }
}

const isSame = (one: Place, other: Place): boolean => one.nextAt === other.nextAt && one.seq === other.seq
