import { COMMANDS } from '../../contract/databases/commands.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import type { KnownCommand } from '../commands/command-table.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { ReplySink } from '../engine/reply-sink.js'
import { effectOf } from '../limits/command-effect.js'
import { limitsAfterLogin } from '../resp/command-limits.js'
import { CommandParser } from '../resp/command-parser.js'
import type { KeptBytes, LentBytes } from '../resp/lent-memory.js'
import type { ReplicaLane } from './replica-lane.js'

/**
 * Reads that only the primary answers:
 * - a cursor of the SCAN family is only valid in the engine that returned it;
 * - TOUCH and OBJECT concern the last access of a key, which decides what the primary evicts.
 */
const PRIMARY_ONLY: ReadonlySet<string> = new Set(['SCAN', 'HSCAN', 'SSCAN', 'ZSCAN', 'TOUCH', 'OBJECT'])

/** Whether a command is readable, by its index in the command table. */
const READABLE: readonly boolean[] = COMMANDS.map(
  (row) =>
    row.allowed &&
    row.access === 'read' &&
    row.state === 'stateless' &&
    // The replica may not know a script: engines do not replicate SCRIPT LOAD.
    effectOf(row.name) !== 'script' &&
    !PRIMARY_ONLY.has(row.name),
)

/** Whether a replica may answer a command as well as the primary. */
export function isReadable(command: KnownCommand | undefined): boolean {
  return command !== undefined && READABLE[command.index] === true
}

const REFUSALS = ['-LOADING', '-MASTERDOWN']

/** Whether a replica that cannot answer now may have sent one of these replies. A value that looks like it counts too. */
export function mayHoldRefusal(replies: Buffer): boolean {
  return REFUSALS.some((word) => replies.includes(word))
}

/** Whether the reply at [start, end) comes from a replica that cannot answer now. */
export function isRefusal(chunk: Buffer, start: number, end: number): boolean {
  if (chunk[start] !== REFUSALS[0]?.charCodeAt(0)) return false
  const text = chunk.toString('latin1', start, Math.min(end, start + 16))
  return REFUSALS.some((word) => text.startsWith(word))
}

/** Consecutive reads, or bytes of the gateway (a note) that have their place among the replies. */
export type PendingRead =
  | {
      readonly kind: 'reads'
      readonly bytes: KeptBytes
      readonly start: number
      readonly end: number
      readonly count: number
    }
  | { readonly kind: 'note'; readonly bytes: Buffer }

/** The client of the reads. */
export interface ReplicaReader {
  /** Replies of the replica, or a note as one reply. */
  deliverReply(chunk: LentBytes, start: number, end: number, completed: number): void
  /** Sends reads that the replica cannot answer to the primary, in this order. */
  retryOnPrimary(pending: readonly PendingRead[]): void
  /** Part of a reply was delivered; the rest will never arrive. */
  fail(count: number, error: HomeportError, partial: boolean): void
}

/**
 * The reads of one client that are pending on the replica. They are kept until they are answered. When the replica is lost
 * or starts to load its data, the pending reads go to the primary, in order. The client does not notice, because reading
 * twice does no harm. The object cannot be used after that.
 */
export class ReplicaReads implements ReplySink {
  readonly link: EngineLink
  readonly #lane: ReplicaLane
  readonly #reader: ReplicaReader
  readonly #pending: PendingRead[] = []
  /** Replies that have arrived for the first pending entry. */
  #answered = 0
  #isOver = false

  constructor(lane: ReplicaLane, reader: ReplicaReader) {
    this.#lane = lane
    this.#reader = reader
    this.link = lane.link
  }

  /** Sends the `count` commands at [start, end). */
  send(bytes: KeptBytes, start: number, end: number, count: number): void {
    this.#pending.push({ kind: 'reads', bytes, start, end, count })
    this.#lane.watch.sent()
    this.link.send(this, bytes, start, end, count)
  }

  /** Delivers bytes of the gateway after everything that is pending. */
  note(bytes: Buffer): void {
    this.#pending.push({ kind: 'note', bytes })
    this.#deliverNotes()
  }

  deliver(chunk: LentBytes, start: number, end: number, completed: number): void {
    if (this.#isOver) return
    if (isRefusal(chunk, start, end)) {
      this.#giveUp()
      return
    }
    this.#reader.deliverReply(chunk, start, end, completed)
    this.#advance(completed)
  }

  fail(count: number, error: HomeportError, partial: boolean): void {
    if (this.#isOver) return
    if (!partial) {
      this.#giveUp()
      return
    }
    this.#isOver = true
    this.#reader.fail(count, error, true)
  }

  #advance(completed: number): void {
    this.#answered += completed
    for (let first = this.#pending[0]; first?.kind === 'reads'; first = this.#pending[0]) {
      if (this.#answered < first.count) return
      this.#answered -= first.count
      this.#pending.shift()
      this.#deliverNotes()
    }
  }

  #deliverNotes(): void {
    for (let first = this.#pending[0]; first?.kind === 'note'; first = this.#pending[0]) {
      this.#pending.shift()
      this.#reader.deliverReply(first.bytes, 0, first.bytes.length, 1)
    }
  }

  #giveUp(): void {
    this.#isOver = true
    const [first, ...others] = this.#pending
    if (first) this.#reader.retryOnPrimary([withoutAnswered(first, this.#answered), ...others])
  }
}

/** The reads without the first `count`, which have been answered. */
function withoutAnswered(pending: PendingRead, count: number): PendingRead {
  if (pending.kind === 'note' || count === 0) return pending
  const { bytes, start, end } = pending
  return { ...pending, start: start + lengthOf(bytes.subarray(start, end), count), count: pending.count - count }
}

/** Length of the first `count` commands in `bytes`. */
function lengthOf(bytes: Buffer, count: number): number {
  const parser = new CommandParser()
  parser.limits = { ...limitsAfterLogin(Number.POSITIVE_INFINITY), largeArgumentBytes: Number.POSITIVE_INFINITY }
  parser.push(bytes)
  for (let passed = 0; passed < count; passed++) parser.next()
  return parser.frameEnd
}
