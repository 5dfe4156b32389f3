import { type Clock, type TargetPolicy, TimeSlice } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { QueueMeter, Tracer } from '../../telemetry/index.js'
import { storedConfig } from '../api/message-view.js'
import { becauseOfRule } from '../key-rule.js'
import type { DailyQuota } from '../transactions/daily-messages.js'
import type { PendingRow, PublishEntry } from '../transactions/messages.js'
import * as messagesPublish from '../transactions/messages-publish.js'
import { offersAfter, type Published } from '../transactions/messages-publish.js'
import type { BatchReply, GroupReply, Intake, Publisher, PublishItem, PublishReply } from '../types.js'
import { Drafter } from './drafter.js'
import { type ItemDraft, readGroups, refuseLarge, refuseTooMany } from './groups.js'
import { dedupNamespaceOf, refuseOutOfScope } from './scope.js'
import type { SettingLimits } from './settings.js'
import { publishTraced } from './traced.js'

/** Drops replaced messages from memory. `entries` are those of the publication. */
export type DropReplaced = (seqs: readonly number[], entries: readonly PublishEntry[]) => Promise<void>

/** What publishing is built from. */
export interface PublishingDeps {
  readonly store: Store
  readonly clock: Clock
  readonly limits: SettingLimits
  /** Forbidden destinations are refused when published if they need no DNS lookup. */
  readonly targets: TargetPolicy
  /** Called with messages right after their commit. */
  readonly offer: (rows: readonly PendingRow[]) => void
  /** Called with the numbers of messages that new ones have replaced, after the commit and before the reply. */
  readonly drop: DropReplaced
  readonly meter: QueueMeter
  /** The partition of messages that are published here; `undefined` on a server that is alone. */
  readonly partitionFor: (accountId: string) => number | undefined
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
}

/** Messages stored in one transaction. Other writes run between two transactions. */
const BATCH_ENTRIES = 1_000

/** The reply to an item, or the error with which a request of this single item fails. */
export type ItemReply = BatchReply | GroupReply | HomeportError

/**
 * Publishes items: an intake gets the items that it claims, the others become plain messages. A message id is returned only
 * after the commit of the message.
 */
export class Publishing {
  readonly #deps: PublishingDeps
  readonly #intakes: Intake[] = []
  readonly #drafter: Drafter

  constructor(deps: PublishingDeps) {
    this.#deps = deps
    this.#drafter = new Drafter(deps.limits, deps.targets)
  }

  addIntake(intake: Intake): void {
    this.#intakes.push(intake)
  }

  /**
   * Publishes the items of one request. Replies are in the order of the items.
   * @throws HomeportError the error of an intake, or `setting_limit` for too many messages. Then no plain message was
   * published either.
   */
  publish(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemReply[]> {
    refuseTooMany(items.length)
    const { scope } = publisher.caller
    if (scope !== undefined) refuseOutOfScope(scope, items, (item) => this.#intakeOf(item) === undefined)
    const intake = items[0] && this.#intakeOf(items[0])
    if (!items.every((item) => this.#intakeOf(item) === intake)) return this.#publishByIntake(publisher, items)
    return intake ? intake.submit(publisher, items) : this.#publishOwn(publisher, items)
  }

  #intakeOf(item: PublishItem): Intake | undefined {
    return this.#intakes.find((intake) => intake.claims(item))
  }

  async #publishByIntake(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemReply[]> {
    const replies: ItemReply[] = new Array(items.length)
    const byIntake = this.#indexesByIntake(items)
    for (const [intake, indexes] of byIntake) {
      const claimed = indexes.map((index) => items[index] as PublishItem)
      const answered = intake ? await intake.submit(publisher, claimed) : await this.#publishRest(publisher, claimed)
      indexes.forEach((index, at) => {
        replies[index] = answered[at] as ItemReply
      })
    }
    return replies
  }

  /**
   * Publishes the plain items of a request whose other items are already stored. The request as a whole can no longer be
   * refused, so each of these items gets the error of the daily limit.
   */
  async #publishRest(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemReply[]> {
    try {
      return await this.#publishOwn(publisher, items)
    } catch (error) {
      if (!isError(error, 'daily_limit')) throw error
      return items.map(() => error)
    }
  }

  /** The error for an unreadable request. An intake that claims one of the readable items may replace it. */
  refusal(items: readonly PublishItem[], error: HomeportError): HomeportError {
    for (const item of items) {
      const own = this.#intakeOf(item)?.refusal?.(item, error)
      if (own) return own
    }
    return error
  }

  /** Item indexes by intake. Plain items, under `undefined`, come last. */
  #indexesByIntake(items: readonly PublishItem[]): readonly (readonly [Intake | undefined, readonly number[]])[] {
    const byIntake = new Map<Intake | undefined, number[]>(this.#intakes.map((intake) => [intake, []]))
    byIntake.set(undefined, [])
    items.forEach((item, index) => {
      byIntake.get(this.#intakeOf(item))?.push(index)
    })
    return [...byIntake].filter(([, indexes]) => indexes.length > 0)
  }

  /** Publishes plain items, traced if traces are on. */
  #publishOwn(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemReply[]> {
    const { tracer } = this.#deps
    if (!tracer) return this.#publishPlain(publisher, items)
    return publishTraced(tracer, publisher, items, (traced) => this.#publishPlain(publisher, traced))
  }

  async #publishPlain(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemReply[]> {
    const { clock, limits, store } = this.#deps
    const now = clock.now()
    const { accountId, scope } = publisher.caller
    const partition = this.#deps.partitionFor(accountId)
    const common = { accountId, callerIp: publisher.ip, now, limits, partition }
    const drafting = scope && 'name' in scope ? { ...common, dedupNamespace: dedupNamespaceOf(scope) } : common
    const reading = readGroups(store, drafting.accountId, items)
    const groups = reading instanceof Promise ? await reading : reading
    const quota = quotaOf(publisher.caller)
    refuseLarge(items, groups)
    const replies: ItemReply[] = []
    let drafts: (ItemDraft | HomeportError)[] = []
    let entries = 0
    const slice = items.length > 1 ? new TimeSlice() : undefined
    for (const item of items) {
      const draft = attempt(() => this.#drafter.draft(item, drafting, groups))
      drafts.push(draft)
      if (!(draft instanceof HomeportError)) entries += draft.entries.length
      // With a daily limit, everything is stored in one transaction, so that a refusal refuses all messages.
      if (entries >= BATCH_ENTRIES && quota === undefined) {
        for (const reply of await this.#commit(drafts, now)) replies.push(reply)
        drafts = []
        entries = 0
      }
      if (slice?.isOver) await slice.rest()
    }
    if (replies.length === 0) return this.#commit(drafts, now, quota)
    return replies.concat(await this.#commit(drafts, now))
  }

  /** Stores the messages of some items in one transaction and builds the replies for the items. */
  async #commit(drafts: readonly (ItemDraft | HomeportError)[], now: number, quota?: DailyQuota): Promise<ItemReply[]> {
    const entries: PublishEntry[] = []
    for (const draft of drafts)
      if (!(draft instanceof HomeportError)) for (const each of draft.entries) entries.push(each)
    const published = await this.#store(entries, now, quota)
    const { length: stored } = published.seqs
    const [first] = entries
    if (first) this.#deps.meter.activity.add(first.message.account_id, 'published', stored)
    this.#deps.meter.published += stored
    this.#deps.meter.deduplicated += entries.length - stored
    this.#deps.offer(offersAfter(entries, published))
    if (published.dropped?.length) await this.#deps.drop(published.dropped, entries)
    let next = 0
    const replyToNext = (entry: PublishEntry): PublishReply => replyTo(entry, published, next++)
    return drafts.map((draft) => {
      if (draft instanceof HomeportError) return draft
      const [first] = draft.entries
      if (draft.kind === 'single' && first) return replyToNext(first)
      return draft.entries.map(replyToNext)
    })
  }

  #store(entries: readonly PublishEntry[], now: number, quota: DailyQuota | undefined): Promise<Published> | Published {
    if (entries.length === 0) return NOTHING_PUBLISHED
    if (quota !== undefined) return this.#deps.store.run(messagesPublish.publishCounted, { entries, now, quota })
    return this.#deps.store.run(messagesPublish.publish, { entries, now })
  }
}

/** The daily message limit of a caller's account; `undefined` if it has none. */
export function quotaOf({ accountId, dailyMessages }: Publisher['caller']): DailyQuota | undefined {
  return dailyMessages === undefined ? undefined : { accountId, limit: dailyMessages }
}

const NOTHING_PUBLISHED: Published = { duplicateOf: [], seqs: [], turns: [] }

function attempt<Made>(make: () => Made): Made | HomeportError {
  try {
    return make()
  } catch (error) {
    if (error instanceof HomeportError) return error
    throw error
  }
}

function replyTo(
  { message: { message_id: messageId, url, config } }: PublishEntry,
  { duplicateOf, replaced, skipped }: Published,
  index: number,
): PublishReply {
  const older = duplicateOf[index]
  const gone = replaced?.[index]
  if (older === undefined && gone === undefined) return { messageId, url }
  const because = (effect: 'skipped' | 'replaces') => {
    // The configuration has the key as the publisher sent it.
    const { rule } = storedConfig(config)
    return rule && { because: becauseOfRule(rule, effect) }
  }
  if (gone !== undefined) return { messageId, url, replaced: gone, ...because('replaces') }
  const answer = { messageId: older ?? messageId, url, deduplicated: true as const }
  return skipped?.[index] ? { ...answer, ...because('skipped') } : answer
}
