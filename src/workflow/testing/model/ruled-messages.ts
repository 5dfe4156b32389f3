import type { Random } from '../../../base/testing/random.js'
import { draftMessage, type PendingMessage } from '../../../queue/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import * as messagesPublish from '../../../queue/transactions/messages-publish.js'
import { offersOf } from '../../../queue/transactions/queue-turns.js'
import type { Store } from '../../../store/index.js'
import { json } from './program.js'
import { RuleWatch, someRule } from './rule-watch.js'

const LIMITS = { timeoutMs: 900_000 }
/** Messages with priorities that are published together: more than are sent at the same time. */
const BURST = 6
const PRIORITIES = [-600, -60, -1, 1, 60, 600]

/** Position of a message in its line: when it is due, and its due time with the priority. Unix milliseconds. */
interface Place {
  readonly dueAt: number
  readonly first: number
}

/** Collaborators of the ruled messages. */
export interface RuledDeps {
  readonly store: Store
  readonly accountId: string
  readonly random: Random
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly drop: (seqs: readonly number[]) => void
  /** Records that a message is not due before this time. */
  readonly asleep: (messageId: string, until: number) => void
  /** The numbers of the messages that the dispatcher holds and has not sent. */
  readonly unsent: () => readonly number[]
}

/**
 * Messages with a debounce or singleton key, and messages with priorities that wait in one line, beside the runs of a
 * simulation. Tracks the expected effect of keys and priorities without reading the store.
 */
export class RuledMessages {
  readonly #deps: RuledDeps
  /** The numbers of all messages with a key. */
  readonly #keyed = new Map<number, string>()
  readonly #open = new Set<string>()
  readonly #ended = new Set<number>()
  readonly #rules = new RuleWatch((messageId) => this.#open.has(messageId))
  /** Messages with priorities that were not sent yet. Of the due messages, the one with the smallest `first` goes first. */
  readonly #line = new Map<number, Place>()

  constructor(deps: RuledDeps) {
    this.#deps = deps
  }

  /** Whether a message has a key. The simulation does not undo the cancel of such a message. */
  has(seq: number): boolean {
    return this.#keyed.has(seq)
  }

  /** Publishes a message with a key. It is stored, replaces the message that holds the key, or is skipped. */
  async publish(): Promise<void> {
    const { store, random, now, offer, drop, asleep } = this.#deps
    const rule = someRule(random)
    const holder = this.#rules.holder(rule)
    const entry = this.#draft('http://ruled.test/', { 'upstash-retries': String(random.below(3)), ...rule.headers })
    const { message_id: messageId } = entry.message
    const published = await store.run(messagesPublish.publish, { entries: [entry], now: now() })
    const isSkipped = rule.name === 'skip' && holder !== undefined
    const [skippedFor, replaced] = [published.duplicateOf[0], published.replaced?.[0]]
    if (skippedFor !== (isSkipped ? holder : undefined))
      throw new Error(`a message with the ${rule.place} key, held by ${holder}, was skipped for ${skippedFor}`)
    if (replaced !== (isSkipped ? undefined : holder))
      throw new Error(`${messageId} has replaced ${replaced}, and ${holder} holds the ${rule.place} key`)
    if (isSkipped) return
    this.#rules.taken(messageId, rule)
    for (const [seq, id] of this.#keyed) if (id === replaced) this.cancelled(seq)
    drop(published.dropped ?? [])
    this.#open.add(messageId)
    const offers = offersOf([entry.message], published)
    for (const { seq } of offers) this.#keyed.set(seq, messageId)
    if (rule.delayMs > 0) asleep(messageId, now() + rule.delayMs)
    offer(offers)
  }

  /** Publishes messages with priorities that are due at once and wait for the same host. */
  async publishBurst(): Promise<void> {
    const { store, random, now, offer } = this.#deps
    const priorities = Array.from({ length: BURST }, () => random.pick(PRIORITIES) ?? 1)
    const entries = priorities.map((priority) =>
      this.#draft('http://line.test/', { 'upstash-retries': '0', 'homeport-priority': String(priority) }),
    )
    const at = now()
    const offers = offersOf(
      entries.map(({ message }) => message),
      await store.run(messagesPublish.publish, { entries, now: at }),
    )
    for (const [index, { seq, next_at: dueAt }] of offers.entries())
      this.#line.set(seq, { dueAt, first: at - (priorities[index] ?? 0) * 1_000 })
    offer(offers)
  }

  /** A message is about to be sent. */
  sent({ messageId, seq }: PendingMessage): void {
    if (this.#ended.has(seq)) throw new Error(`${messageId} was replaced or cancelled, and was delivered`)
    this.#rules.sent(messageId)
    const place = this.#line.get(seq)
    if (place === undefined) return
    this.#line.delete(seq)
    const now = this.#deps.now()
    const earlier = this.#deps.unsent().filter((other) => {
      const { dueAt, first } = this.#line.get(other) ?? place
      // The clock may have been set back.
      return dueAt <= now && first < place.first
    })
    if (earlier.length > 0)
      throw new Error(`${messageId} was delivered before ${earlier}, which have the earlier places`)
  }

  /** A message has ended by itself. */
  settled({ messageId }: PendingMessage): void {
    this.#open.delete(messageId)
  }

  /** A message was cancelled, or replaced by a newer one. */
  cancelled(seq: number): void {
    this.#line.delete(seq)
    const messageId = this.#keyed.get(seq)
    if (messageId === undefined) return
    this.#open.delete(messageId)
    this.#ended.add(seq)
  }

  #draft(destination: string, headers: Readonly<Record<string, string>>) {
    const { accountId, now } = this.#deps
    return draftMessage(
      { destination, headers, body: json('x') },
      { accountId, callerIp: null, now: now(), limits: LIMITS },
    )
  }
}
