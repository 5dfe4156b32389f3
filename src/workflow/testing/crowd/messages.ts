import { newId } from '../../../base/index.js'
import { draftMessage, type PendingMessage } from '../../../queue/index.js'
import * as flowKeys from '../../../queue/transactions/flow-keys.js'
import type { PublishEntry } from '../../../queue/transactions/messages.js'
import * as messagesCancel from '../../../queue/transactions/messages-cancel.js'
import * as messagesDead from '../../../queue/transactions/messages-dead.js'
import { ANY_MESSAGE } from '../../../queue/transactions/messages-filter.js'
import * as messagesPublish from '../../../queue/transactions/messages-publish.js'
import { offersOf } from '../../../queue/transactions/queue-turns.js'
import * as queuesTransactions from '../../../queue/transactions/queues.js'
import * as schedules from '../../../queue/transactions/schedules.js'
import { maxCopies, readQueues } from '../model/census.js'
import { someFlow } from '../model/flow-watch.js'
import { json } from '../model/program.js'
import type { CrowdDeps } from './deps.js'

const QUEUES = ['first', 'second'] as const
const MAX_TURNS = 3
const FIRE_EVERY_MS = 60_000
const FIRES = 3

/** Actions of a crowd on plain messages, queues and schedules, and checks of their results. */
export class CrowdMessages {
  readonly #deps: CrowdDeps
  readonly #cancelled = new Set<number>()
  /** Dead letters that were retried or deleted. */
  readonly #left = new Set<number>()
  /** Deduplication keys, each with its message. */
  readonly #keys = new Map<string, string>()
  #published = 0
  #schedules: { readonly scheduleId: string; dueAt: number; left: number }[] = []

  constructor(deps: CrowdDeps) {
    this.#deps = deps
  }

  /** Does one random action. */
  act(): Promise<void> {
    const dice = this.#deps.random.below(20)
    if (dice < 8) return this.#publish()
    if (dice < 11) return this.#cancel()
    if (dice < 14) return this.#changeQueue()
    if (dice < 15) return this.#removeQueue()
    if (dice < 16) return this.#schedule()
    if (dice < 17) return this.#changeKey()
    if (dice < 18) return this.#retryDeadTwice()
    return this.fire()
  }

  /** A message is about to be sent. */
  sent({ seq, messageId }: PendingMessage): void {
    if (this.#cancelled.has(seq)) throw new Error(`${messageId} was sent after it was cancelled`)
  }

  /** Publishes messages, some to queues, some with deduplication keys that other messages use, too. */
  async #publish(): Promise<void> {
    const { random } = this.#deps
    const entries = Array.from({ length: 1 + random.below(3) }, () => this.#entry())
    const published = await this.#store(entries)
    for (const [index, { message, dedup }] of entries.entries()) {
      const holder = published.duplicateOf[index] ?? message.message_id
      if (!dedup) continue
      const known = this.#keys.get(dedup.key) ?? holder
      if (known !== holder) throw new Error(`${dedup.key} is held by ${known} and by ${holder}`)
      this.#keys.set(dedup.key, holder)
    }
  }

  #entry(): PublishEntry {
    const { random } = this.#deps
    const queue = random.pick([...QUEUES, undefined])
    const callback: Record<string, string> = random.chance(0.3)
      ? { 'upstash-callback': 'http://callback.test/', 'upstash-callback-retries': '0' }
      : {}
    const headers = { 'upstash-retries': String(random.below(2)), ...callback, ...someFlow(random) }
    const item = { destination: 'http://plain.test/', headers, body: json(++this.#published), ...(queue && { queue }) }
    const { message } = this.#draft(item)
    const key = `key-${Math.floor(this.#deps.now() / 60_000)}-${random.below(3)}`
    return { message, dedup: random.chance(0.2) ? { key, expiresAt: Number.MAX_SAFE_INTEGER } : null }
  }

  async #store(entries: readonly PublishEntry[]) {
    const { store, now, offer } = this.#deps
    const published = await store.run(messagesPublish.publish, { entries, now: now() })
    const fresh = entries.filter((_, index) => published.duplicateOf[index] === undefined)
    offer(
      offersOf(
        fresh.map(({ message }) => message),
        published,
      ),
    )
    return published
  }

  #draft(item: Parameters<typeof draftMessage>[0]): PublishEntry {
    const { accountId, now } = this.#deps
    return draftMessage(item, { accountId, callerIp: null, now: now(), limits: { timeoutMs: 900_000 } })
  }

  async #cancel(): Promise<void> {
    const { store, random, accountId, now, offer } = this.#deps
    const { messages } = await store.run(readQueues, { accountId })
    const chosen = messages.filter(({ kind }) => kind === 'http' && random.chance(0.3)).map(({ seq }) => seq)
    const { seqs, offers } = await store.run(messagesCancel.cancel, { seqs: chosen, at: now() })
    this.cancelled(seqs)
    offer(offers)
  }

  /** A caller got the result that these messages were cancelled. */
  cancelled(seqs: readonly number[]): void {
    for (const seq of seqs) {
      if (this.#cancelled.has(seq)) throw new Error(`message ${seq} was cancelled twice`)
      this.#cancelled.add(seq)
    }
    this.#deps.drop({ seqs })
  }

  /** A caller got the result that these dead letters were retried or deleted. */
  leftDeadLetters(seqs: readonly number[]): void {
    for (const seq of seqs) {
      if (this.#left.has(seq)) throw new Error(`message ${seq} has left the dead letters twice`)
      this.#left.add(seq)
    }
  }

  async #changeQueue(): Promise<void> {
    const { store, random, accountId, now, offer } = this.#deps
    const name = random.pick(QUEUES) ?? 'first'
    const paused = random.chance(0.3) ? 1 : 0
    const parallelism = 1 + random.below(MAX_TURNS)
    if (random.chance(0.5)) {
      offer(await store.run(queuesTransactions.upsert, { accountId, name, parallelism, paused, now: now() }))
    } else offer((await store.run(queuesTransactions.setPaused, { accountId, name, paused, now: now() })) ?? [])
  }

  async #removeQueue(): Promise<void> {
    const { store, random, accountId } = this.#deps
    await store.run(queuesTransactions.removeEmpty, { accountId, name: random.pick(QUEUES) ?? 'first' })
  }

  /** Resumes every queue. */
  async resumeAll(): Promise<void> {
    const { store, accountId, now, offer } = this.#deps
    for (const name of QUEUES) {
      offer((await store.run(queuesTransactions.setPaused, { accountId, name, paused: 0, now: now() })) ?? [])
    }
  }

  async #changeKey(): Promise<void> {
    const { store, random, accountId, now } = this.#deps
    const change = random.chance(0.5) ? { pinned_rate: 0 as const } : { rate: 2, pinned_rate: 0 as const }
    const args = { accountId, key: random.pick(['narrow', 'slow']) ?? 'slow', change, create: true, at: now() }
    await store.run(flowKeys.modify, args)
    await store.run(flowKeys.sweep, { before: now() - 600_000, after: flowKeys.FIRST_KEY, limit: 100 })
  }

  /** Two callers retry the same dead letters: each is retried once. */
  async #retryDeadTwice(): Promise<void> {
    await Promise.all([this.#retryDead(), this.#retryDead()])
  }

  async #retryDead(): Promise<void> {
    const { store, accountId, now, offer } = this.#deps
    const order = 'earliestFirst' as const
    const selector = {
      accountId,
      kind: 'http',
      dlqIds: undefined,
      filter: ANY_MESSAGE,
      order,
      after: undefined,
      limit: 3,
    }
    const ids = Array.from({ length: 3 }, () => newId('msg_', now()))
    const revision = { nextAt: now(), maxRetries: undefined, config: '{}', flowKey: undefined, labels: undefined }
    offer((await store.run(messagesDead.retryDeadLetters, { selector, ids, at: now(), revision })).offers)
  }

  async #schedule(): Promise<void> {
    const { store, accountId, now } = this.#deps
    const [at, scheduleId] = [now(), newId('scd_', now())]
    const how = { cron: '* * * * *', destination: 'http://plain.test/', headers: '{}', body: null, queue: 'first' }
    const row = { account_id: accountId, schedule_id: scheduleId, ...how, caller_ip: null, created_at: at }
    await store.run(schedules.put, { ...row, next_at: at + FIRE_EVERY_MS })
    this.#schedules.push({ scheduleId, dueAt: at + FIRE_EVERY_MS, left: FIRES })
  }

  /** Time of the next fire; `Infinity` if there is none. */
  get nextFireAt(): number {
    return Math.min(...this.#schedules.map(({ dueAt }) => dueAt))
  }

  /** Fires due schedules twice at once: only one attempt may succeed. */
  async fire(): Promise<void> {
    const { now } = this.#deps
    const due = this.#schedules.filter(({ dueAt }) => dueAt <= now())
    this.#schedules = this.#schedules.filter((one) => !due.includes(one))
    for (const { scheduleId, dueAt, left } of due) {
      const nextAt = left === 1 ? null : now() + FIRE_EVERY_MS
      const fired = await Promise.all([this.#fire(scheduleId, dueAt, nextAt), this.#fire(scheduleId, dueAt, nextAt)])
      if (fired.filter(Boolean).length !== 1) throw new Error(`${scheduleId} fired ${fired}`)
      if (nextAt !== null) this.#schedules.push({ scheduleId, dueAt: nextAt, left: left - 1 })
    }
  }

  async #fire(scheduleId: string, dueAt: number, nextAt: number | null): Promise<boolean> {
    const { store, accountId, now, offer } = this.#deps
    const entries = [this.#draft({ destination: 'http://plain.test/', headers: {}, body: undefined })]
    const fire = { accountId, scheduleId, dueAt, nextAt, now: now(), entries, error: null }
    const { offers } = await store.run(schedules.fire, fire)
    offer(offers)
    return offers.length > 0
  }

  /**
   * Checks that no dead letter was retried twice, that turns belong to open messages, that no queue exceeds its turns, and
   * that no queue holds messages while it has free turns.
   */
  async check(): Promise<void> {
    const { store, accountId } = this.#deps
    if ((await store.run(maxCopies, { accountId })) > 1) throw new Error('a dead letter was retried twice')
    const { queues, turns, messages } = await store.run(readQueues, { accountId })
    const open = new Set(messages.flatMap(({ seq, queue, slot_seq }) => (queue === null ? slot_seq : seq) ?? []))
    for (const turn of turns)
      if (!open.has(turn.message_seq)) throw new Error(`turn ${turn.message_seq} has ended, but is stored`)
    const given = new Set(turns.map(({ message_seq }) => message_seq))
    for (const { seq, queue, state } of messages) {
      if (this.#cancelled.has(seq)) throw new Error(`message ${seq} was cancelled, but is open`)
      if (queue === null) continue
      if ((state === 'pending') !== given.has(seq))
        throw new Error(`message ${seq} is ${state}, turn: ${given.has(seq)}`)
      if (!queues.some(({ name }) => name === queue)) throw new Error(`message ${seq} waits in ${queue}, which is gone`)
    }
    for (const { name, parallelism, paused } of queues) {
      const count = turns.filter(({ queue }) => queue === name).length
      const held = messages.some(({ queue, state }) => queue === name && state === 'held')
      if (count > MAX_TURNS) throw new Error(`${name} has ${count} turns`)
      if (paused === 0 && held && count < parallelism) throw new Error(`${name} stands still with ${count} turns`)
    }
  }
}
