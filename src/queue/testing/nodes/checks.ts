import { PARTITIONS } from '../../../cluster/index.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import { isParkedTime } from '../../transactions/messages-parked.js'
import * as census from './census.js'
import type { Ledger } from './ledger.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Stage } from './stage.js'
import { STARTS_AT_MS, type Timeline } from './timeline.js'

/** The rows are compared this often. That is often enough, because a lost message stays lost. */
const ROWS_EVERY_MS = 1_000
/** A sweep finds a stray within this time, and a load follows it. */
const FOUND_WITHIN_MS = 6_000
/** A node that gains a partition loads its messages within this time. */
const LOADED_WITHIN_MS = 2_000

/** Writes that may make a paused or cancelled message due again, perhaps only between two comparisons. */
const BRINGS_BACK = /undo|unpause/i

const labelOf = (url: string): string => url.slice(url.lastIndexOf('/') + 1)

/** Checks the invariants I1, I3 and I4 after every step. The ledger checks requests when they begin. */
export class Checks {
  readonly #timeline: Timeline
  readonly #memory: MemoryStore
  readonly #ledger: Ledger
  readonly #nodes: () => readonly SimulatedNode[]
  #nextRowsAt = 0
  #broughtBackAt = Number.NEGATIVE_INFINITY
  #rows: readonly census.CensusRow[] | undefined
  #seen: readonly (readonly number[])[] = []
  /** Pairs of nodes that both believe that they own a partition. */
  #doubles: { readonly partition: number; readonly nodes: readonly [SimulatedNode, SimulatedNode] }[] = []
  readonly #owners = new Array<SimulatedNode | undefined>(PARTITIONS).fill(undefined)
  readonly #ownedSince = new Array<number>(PARTITIONS).fill(0)

  constructor({ timeline, memory, ledger, nodes, effects }: Stage) {
    this.#timeline = timeline
    this.#memory = memory
    this.#ledger = ledger
    this.#nodes = nodes
    effects.onWrite((name) => {
      if (!name.startsWith('nodes.')) this.#rows = undefined
      if (BRINGS_BACK.test(name)) this.#broughtBackAt = this.#timeline.now
    })
  }

  readonly afterStep = (): void => {
    this.#checkOwners()
    if (this.#timeline.now < this.#nextRowsAt) return
    this.#nextRowsAt = this.#timeline.now + ROWS_EVERY_MS
    this.#checkRows()
  }

  /** The store has lost commits: what was seen before no longer counts. */
  lostCommits(): void {
    this.#rows = undefined
    this.#rowsSince.clear()
    this.#broughtBackAt = this.#timeline.now
  }

  /** I1: a partition has at most one owner that may act. */
  #checkOwners(): void {
    const nodes = this.#nodes()
    if (!this.#isAsSeen(nodes)) {
      this.#seen = nodes.map(({ cluster }) => cluster.owned)
      this.#learnOwners(nodes)
    }
    if (this.#ledger.isUnsure) return
    for (const { partition, nodes } of this.#doubles) {
      const [one, other] = nodes
      if (!one.isActing || !other.isActing) continue
      this.#timeline.fail(`I1: ${one.process.name} and ${other.process.name} own partition ${partition}`)
    }
  }

  /** Whether the owners are still those of the last check. Called after every step, so it allocates nothing. */
  #isAsSeen(nodes: readonly SimulatedNode[]): boolean {
    if (nodes.length !== this.#seen.length) return false
    for (let index = 0; index < nodes.length; index++)
      if (nodes[index]?.cluster.owned !== this.#seen[index]) return false
    return true
  }

  #learnOwners(nodes: readonly SimulatedNode[]): void {
    this.#doubles = []
    const owners = new Array<SimulatedNode | undefined>(PARTITIONS).fill(undefined)
    for (const node of nodes) {
      for (const partition of node.cluster.owned) {
        const other = owners[partition]
        if (other) this.#doubles.push({ partition, nodes: [other, node] })
        // A node that wakes up may believe for a moment that it owns partitions that others have taken.
        owners[partition] = other && !node.isActing ? other : node
      }
    }
    for (const [partition, owner] of owners.entries()) {
      if (owner === this.#owners[partition]) continue
      this.#owners[partition] = owner
      this.#ownedSince[partition] = this.#timeline.now
    }
  }

  /** Messages that have not ended. */
  pending(): readonly census.CensusRow[] {
    this.#rows ??= this.#memory.run(census.pending, {})
    return this.#rows
  }

  #checkRows(): void {
    for (const { queue, turns, parallelism } of this.#memory.run(census.turns, {})) {
      if (turns > parallelism) this.#timeline.fail(`I4: the queue ${queue} has ${turns} turns`)
    }
    // For a parked message, the wait starts again when it is resumed.
    const pending = this.pending().filter((row) => row.state === 'pending' && !isParkedTime(row.next_at))
    const attempts = new Set(pending.map(attemptOf))
    for (const attempt of this.#rowsSince.keys()) if (!attempts.has(attempt)) this.#rowsSince.delete(attempt)
    for (const row of pending) if (row.flow_key === null) this.#checkHeld(row)
  }

  /**
   * I3: a due message of an undisturbed owner is sent, at the latest after a sweep. If the message was pending before its
   * partition was gained, a load brings it sooner, unless the previous owner still had a request for it in flight.
   */
  #checkHeld(row: census.CensusRow): void {
    const { now } = this.#timeline
    const owner = this.#owners[row.partition]
    if (!owner?.isActing) return
    const { calmSince, offsetMs } = owner.process
    const dueAt = row.next_at - STARTS_AT_MS - offsetMs
    const gainedAt = this.#ownedSince[row.partition] ?? 0
    const committedAt = this.#committedAt(row)
    const overAt = this.#ledger.overAt.get(row.message_id) ?? 0
    const since = Math.max(dueAt, calmSince, gainedAt, overAt, committedAt)
    const isLoaded = !this.#ledger.isUnsure && Math.max(committedAt, overAt, this.#broughtBackAt) < gainedAt
    if (now - since <= (isLoaded ? LOADED_WITHIN_MS : FOUND_WITHIN_MS)) return
    if ([...this.#ledger.flights].some(({ messageId }) => messageId === row.message_id)) return
    const label = labelOf(row.url)
    const who = owner.process.name
    this.#timeline.fail(`I3: ${label} (partition ${row.partition} of ${who}) is due for ${now - since} ms and not sent`)
  }

  readonly #rowsSince = new Map<string, number>()

  /** When a message was first seen pending at this attempt. */
  #committedAt(row: census.CensusRow): number {
    const attempt = attemptOf(row)
    const since = this.#rowsSince.get(attempt) ?? this.#timeline.now
    this.#rowsSince.set(attempt, since)
    return since
  }

  /** Checks the end state: all messages have ended, and I2: no acknowledged message is gone. */
  checkEnd(): void {
    const left = this.pending()
    const names = left
      .slice(0, 5)
      .map(({ url, state, flow_key, queue }) => `${url} (${state} ${flow_key ?? queue ?? ''})`)
    if (left.length > 0) this.#timeline.fail(`stuck: ${left.length} messages have not ended: ${names.join(', ')}`)
    const rows = this.#memory.run(census.messages, {})
    const stored = new Set(rows.map(({ url }) => labelOf(url)))
    for (const { label, isAcknowledged, mayBeGone } of this.#ledger.tracked.values()) {
      if (isAcknowledged && !mayBeGone && !stored.has(label))
        this.#timeline.fail(`I2: the acknowledged message ${label} is gone`)
    }
    for (const row of rows) {
      const message = this.#ledger.tracked.get(labelOf(row.url))
      if (!message) continue
      if (row.state === 'delivered' && message.successes === 0)
        this.#timeline.fail(`${message.label} was never delivered`)
      const hasEnded = row.state === 'delivered' || (row.state === 'failed' && message.starts > row.retried)
      if (!hasEnded && row.state !== 'canceled') this.#timeline.fail(`${message.label} has ended as ${row.state}`)
      if (!hasEnded || !message.hasCallback) continue
      if (!stored.has(`back-${message.label}`)) this.#timeline.fail(`${message.label} has no callback`)
    }
  }

  /** Whether all partitions have owners, evenly spread. Drained nodes own some only if all nodes are drained. */
  get isBalanced(): boolean {
    const counts = this.#takers.map(({ cluster }) => cluster.owned.length)
    const sum = counts.reduce((one, other) => one + other, 0)
    const isEven = Math.max(...counts) - Math.min(...counts) <= 1
    return sum === PARTITIONS && (isEven || this.#takers.every(({ cluster }) => cluster.isBeingDrained))
  }

  checkBalance(): void {
    const nodes = this.#nodes()
    const counts = nodes.map(({ cluster }) => `${cluster.owned.length}${cluster.isBeingDrained ? ' (drained)' : ''}`)
    if (!this.isBalanced) this.#timeline.fail(`nodes own ${counts.join(', ')} partitions`)
    const leaders = nodes.filter(({ cluster }) => cluster.isLeader)
    if (leaders.length !== 1) this.#timeline.fail(`${leaders.length} of ${nodes.length} nodes lead`)
  }

  get #takers(): readonly SimulatedNode[] {
    const open = this.#nodes().filter(({ phase }) => phase === 'open')
    const undrained = open.filter(({ cluster }) => !cluster.isBeingDrained)
    return undrained.length > 0 ? undrained : open
  }
}

const attemptOf = ({ seq, retried }: census.CensusRow): string => `${seq} ${retried}`
