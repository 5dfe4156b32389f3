import { newId } from '../../../base/index.js'
import type { Random } from '../../../base/testing/random.js'
import { draftMessage, type PendingMessage, type Settled } from '../../../queue/index.js'
import type { PendingRow, PublishEntry } from '../../../queue/transactions/messages.js'
import * as messagesCancel from '../../../queue/transactions/messages-cancel.js'
import { FIRST_DUE } from '../../../queue/transactions/messages-cancel.js'
import { ANY_MESSAGE } from '../../../queue/transactions/messages-filter.js'
import * as messagesPublish from '../../../queue/transactions/messages-publish.js'
import { offersOf } from '../../../queue/transactions/queue-turns.js'
import * as queues from '../../../queue/transactions/queues.js'
import * as schedules from '../../../queue/transactions/schedules.js'
import type { Store } from '../../../store/index.js'
import { someFlow } from './flow-watch.js'
import { undoSome } from './plain-undo.js'
import { json, type Payload, PROGRAM_URL, randomProgram } from './program.js'
import type { RuledMessages } from './ruled-messages.js'

/** Each queue has this parallelism at first. */
const QUEUES = ['first', 'second'] as const
const FIRE_EVERY_MS = 20_000
const FIRES = 3
const LIMITS = { timeoutMs: 900_000 }
/** At this depth programs invoke no others. */
const DEEP = 3

/** Collaborators of the plain traffic. */
export interface PlainDeps {
  readonly store: Store
  readonly accountId: string
  readonly random: Random
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[], isAgain?: boolean) => void
  readonly drop: (seqs: readonly number[]) => void
  readonly ruled: RuledMessages
}

interface Schedule {
  readonly scheduleId: string
  dueAt: number
  left: number
}

/** Messages of queues, and schedules that start runs, beside the runs of a simulation. */
export class PlainTraffic {
  readonly #deps: PlainDeps
  readonly #cancelled = new Set<number>()
  readonly #turns = new TurnWatch()
  readonly #limits = new Map<string, number>(QUEUES.map((name) => [name, 1]))
  readonly #paused = new Set<string>()
  #schedules: Schedule[] = []
  readonly #made: string[] = []

  constructor(deps: PlainDeps) {
    this.#deps = deps
  }

  /** A message is about to be sent. */
  sent(message: PendingMessage): void {
    if (this.#cancelled.has(message.seq)) throw new Error(`${message.messageId} was delivered after it was cancelled`)
    this.#deps.ruled.sent(message)
    this.#turns.sent(message, (queue) => this.#limits.get(queue) ?? 0)
  }

  /** An attempt is settled; if its message was cancelled meanwhile, nothing changes. */
  settled(message: PendingMessage, { retry, offers }: Settled): void {
    if (retry === undefined) this.#deps.ruled.settled(message)
    if (!this.#cancelled.has(message.seq)) this.#turns.settled(message, retry === undefined, offers)
  }

  /** Publishes to a queue. */
  async publish(): Promise<void> {
    const { random } = this.#deps
    const queue = random.pick(QUEUES) ?? 'first'
    const callback: Record<string, string> = random.chance(0.3)
      ? { 'upstash-callback': 'http://callback.test/', 'upstash-callback-retries': '0' }
      : {}
    const headers = { 'upstash-retries': String(random.below(3)), ...callback, ...someFlow(random) }
    await this.#publish([this.#draft({ destination: 'http://plain.test/', headers, body: json('x'), queue })])
  }

  /** Changes the parallelism of a queue, or pauses or resumes it. */
  async changeQueue(): Promise<void> {
    const { store, random, accountId, now } = this.#deps
    const name = random.pick(QUEUES) ?? 'first'
    if (random.chance(0.5)) return this.#setPaused(name, this.#paused.has(name) ? 0 : 1)
    const parallelism = 1 + random.below(3)
    const paused = this.#paused.has(name) ? 1 : 0
    // Turns that have begun continue, so the largest limit so far applies.
    this.#limits.set(name, Math.max(parallelism, this.#limits.get(name) ?? 1))
    this.#deps.offer(await store.run(queues.upsert, { accountId, name, parallelism, paused, now: now() }))
  }

  /** Resumes every queue. */
  async resumeAll(): Promise<void> {
    for (const name of this.#paused) await this.#setPaused(name, 0)
  }

  async #setPaused(name: string, paused: 0 | 1): Promise<void> {
    const { store, accountId, now } = this.#deps
    const rows = await store.run(queues.setPaused, { accountId, name, paused, now: now() })
    if (!rows) return
    if (paused === 1) this.#paused.add(name)
    else this.#paused.delete(name)
    this.#deps.offer(rows)
  }

  /** Creates a schedule that starts a few runs. */
  async schedule(): Promise<void> {
    const { store, random, accountId, now } = this.#deps
    const [at, scheduleId] = [now(), newId('scd_', now())]
    const payload: Payload = { program: randomProgram(random, DEEP), depth: DEEP }
    const how = { cron: '* * * * *', destination: PROGRAM_URL, headers: '{}', body: json(payload), queue: null }
    const row = { account_id: accountId, schedule_id: scheduleId, ...how, caller_ip: null, created_at: at }
    await store.run(schedules.put, { ...row, next_at: at + FIRE_EVERY_MS })
    this.#made.push(scheduleId)
    this.#schedules.push({ scheduleId, dueAt: at + FIRE_EVERY_MS, left: FIRES })
  }

  /** Fires due schedules; sometimes twice, like a server before and after a restart. */
  async fire(): Promise<void> {
    const { random, now } = this.#deps
    for (const schedule of this.#schedules) {
      if (schedule.dueAt > now()) continue
      const { scheduleId, dueAt } = schedule
      const isLast = --schedule.left === 0
      schedule.dueAt = Math.max(dueAt, now()) + FIRE_EVERY_MS
      await this.#fireOnce(scheduleId, dueAt, isLast ? null : schedule.dueAt, 1)
      if (random.chance(0.5)) await this.#fireOnce(scheduleId, dueAt, isLast ? null : schedule.dueAt, 0)
    }
    this.#schedules = this.#schedules.filter(({ left }) => left > 0)
  }

  async #fireOnce(scheduleId: string, dueAt: number, nextAt: number | null, expected: number): Promise<void> {
    const { store, accountId, now } = this.#deps
    const row = await store.run(schedules.get, { accountId, scheduleId })
    const item = { destination: PROGRAM_URL, headers: {}, body: row?.schedule.body ?? undefined }
    const entries = [this.#draft(item, scheduleId)]
    const fire = { accountId, scheduleId, dueAt, nextAt, now: now(), entries, error: null }
    const { offers } = await store.run(schedules.fire, fire)
    if (offers.length !== expected) throw new Error(`${scheduleId} fired ${offers.length} times instead of ${expected}`)
    this.#deps.offer(offers)
  }

  /** Time of the next fire; `Infinity` if there is none. */
  get nextFireAt(): number {
    return Math.min(...this.#schedules.map(({ dueAt }) => dueAt))
  }

  /** Deletes the empty queues and the finished schedules. */
  async removeAll(): Promise<void> {
    const { store, accountId } = this.#deps
    for (const scheduleId of this.#made) await store.run(schedules.remove, { accountId, scheduleId })
    for (const name of QUEUES) {
      if (!(await store.run(queues.removeEmpty, { accountId, name }))) throw new Error(`${name} is not empty`)
    }
  }

  /** Cancels some waiting messages, in any state. */
  async cancel(): Promise<void> {
    const { store, random, now } = this.#deps
    const waiting = (await this.#waiting()).filter(() => random.chance(0.2))
    const { seqs, offers } = await store.run(messagesCancel.cancel, { seqs: waiting, at: now() })
    if (seqs.length !== waiting.length) throw new Error(`cancelled ${seqs} instead of ${waiting}`)
    for (const seq of seqs) {
      this.#deps.ruled.cancelled(seq)
      if (!this.#deps.ruled.has(seq)) this.#cancelled.add(seq)
      this.#turns.ended(seq)
    }
    this.#deps.drop(seqs)
    this.#deps.offer(offers)
  }

  /** Brings some cancelled messages back. */
  async undo(): Promise<void> {
    const undone = await undoSome({ ...this.#deps, isKept: (seq) => this.#deps.ruled.has(seq) }, [...this.#cancelled])
    for (const { seq, slot_seq: turn } of undone) {
      this.#cancelled.delete(seq)
      if (turn !== null && turn !== seq) this.#turns.callbackCameBack(seq, turn)
    }
  }

  async #waiting(): Promise<number[]> {
    const { store, accountId } = this.#deps
    const found: number[] = []
    for (const state of ['held', 'pending'] as const) {
      const selector = { accountId, kind: 'http', state, filter: ANY_MESSAGE, createdUpTo: Number.MAX_SAFE_INTEGER }
      const page = { after: FIRST_DUE, limit: 1_000 }
      const { places } = await store.run(messagesCancel.selectPending, { ...selector, ...page })
      found.push(...places.map(({ seq }) => seq))
    }
    return found
  }

  #draft(item: Parameters<typeof draftMessage>[0], scheduleId?: string): PublishEntry {
    const { accountId, now } = this.#deps
    const from = scheduleId === undefined ? {} : { scheduleId }
    return draftMessage(item, { accountId, callerIp: null, now: now(), limits: LIMITS, ...from })
  }

  async #publish(entries: readonly PublishEntry[]): Promise<void> {
    const published = await this.#deps.store.run(messagesPublish.publish, { entries, now: this.#deps.now() })
    const messages = entries.map(({ message }) => message)
    this.#deps.offer(offersOf(messages, published))
  }
}

/** A turn: its queue, and the `seq` of its message and callbacks that have not ended. */
interface Turn {
  readonly queue: string
  readonly pending: Set<number>
}

/**
 * Tracks the turns of queues without reading the store: a turn begins when its message is sent, and ends when the message
 * and all its callbacks have ended (reference queue 3.8).
 */
export class TurnWatch {
  readonly #turns = new Map<number, Turn>()
  /** Callbacks that were brought back after their turn had ended: they are sent without a turn. */
  readonly #turnless = new Set<number>()
  /** The last attempt with an outcome, by message. */
  readonly #settled = new Map<number, number>()

  /** A message is about to be sent. @param maxTurns limit of the turns of a queue. */
  sent({ messageId, seq, queue, turn }: PendingMessage, maxTurns: (queue: string) => number): void {
    if (turn === undefined || this.#turnless.has(seq)) return
    if (queue === undefined && !this.#turns.get(turn)?.pending.has(seq))
      throw new Error(`${messageId} is a callback of a turn that had ended without it`)
    if (queue === undefined) return
    const known = this.#turns.get(turn)
    // A message that was brought back continues in its turn.
    if (known) known.pending.add(seq)
    else this.#turns.set(turn, { queue, pending: new Set([seq]) })
    const turns = [...this.#turns.values()].filter((other) => other.queue === queue).length
    if (turns > maxTurns(queue))
      throw new Error(`${turns} messages of ${queue} are active, which has ${maxTurns(queue)} turns`)
  }

  /**
   * An attempt is settled. If its message was cancelled and brought back meanwhile, the attempt may have been sent twice:
   * the first outcome counts, and the second changes nothing.
   * @param isOver whether it was the last attempt. @param offers new messages from its settlement.
   */
  settled(
    { messageId, seq, queue, turn, config, retried }: PendingMessage,
    isOver: boolean,
    offers: readonly PendingRow[],
  ): void {
    const pending = turn === undefined ? undefined : this.#turns.get(turn)?.pending
    if (!pending || retried <= (this.#settled.get(seq) ?? -1)) return
    this.#settled.set(seq, retried)
    const callbacks = offers.filter(({ slot_seq }) => slot_seq === turn)
    if (queue !== undefined && config.callback && callbacks.length === 0)
      throw new Error(`the callback of ${messageId} does not belong to its turn`)
    for (const callback of callbacks) pending.add(callback.seq)
    if (isOver) this.ended(seq)
  }

  /** The cancel of a callback was undone. */
  callbackCameBack(seq: number, turn: number): void {
    const pending = this.#turns.get(turn)?.pending
    if (pending) pending.add(seq)
    else this.#turnless.add(seq)
  }

  /** A message or a callback has ended. */
  ended(seq: number): void {
    for (const [turn, { pending }] of this.#turns) {
      pending.delete(seq)
      if (pending.size === 0) this.#turns.delete(turn)
    }
  }
}
