import { type Clock, type TargetPolicy, TimeSlice } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { PendingRow, PublishEntry } from '../transactions/messages.js'
import * as messagesPublish from '../transactions/messages-publish.js'
import { freshOf, type Published } from '../transactions/messages-publish.js'
import { offersOf } from '../transactions/queue-turns.js'
import type { BatchReply, GroupReply, Intake, Publisher, PublishItem, PublishReply } from '../types.js'
import { refuseForbiddenItem } from './destination.js'
import type { Drafting } from './draft.js'
import { contentBytes, countMessages, draftItem, type ItemDraft, readGroups, type UrlGroups } from './groups.js'
import type { SettingLimits } from './settings.js'

/** What publishing works with. */
export interface PublishingDeps {
  readonly store: Store
  readonly clock: Clock
  readonly limits: SettingLimits
  /** What is published to a forbidden destination is refused, as far as it can be told then. */
  readonly targets: TargetPolicy
  /** Takes messages right after their commit. */
  readonly offer: (rows: readonly PendingRow[]) => void
}

/** Messages of one request. */
const MOST_MESSAGES = 10_000

/**
 * Refuses more messages than one request may make.
 * @throws HomeportError `setting_limit`.
 */
export function refuseTooMany(messages: number): void {
  if (messages <= MOST_MESSAGES) return
  const limit = `${MOST_MESSAGES} messages in one request`
  throw new HomeportError('setting_limit', { setting: 'The number of messages', found: String(messages), limit })
}

/** So many messages are stored in one transaction: others write between two. */
const BATCH_ENTRIES = 1_000
/** A body that goes to every endpoint of a URL group is stored for each of them. */
const MOST_CONTENT_BYTES = 256 * 2 ** 20

function refuseTooMuch(bytes: number): void {
  if (bytes <= MOST_CONTENT_BYTES) return
  const limit = `${MOST_CONTENT_BYTES} bytes for all messages of one request together`
  throw new HomeportError('setting_limit', { setting: 'The content of the messages', found: `${bytes} bytes`, limit })
}

/** The answer to an item: what a batch says, or the error that a request with only this item ends with. */
export type ItemAnswer = BatchReply | GroupReply | HomeportError

/**
 * Takes in what is published: items that an intake claims go there, the others become messages. Everything that is
 * answered with a message id is on disk by then.
 */
export class Publishing {
  readonly #deps: PublishingDeps
  readonly #intakes: Intake[] = []

  constructor(deps: PublishingDeps) {
    this.#deps = deps
  }

  addIntake(intake: Intake): void {
    this.#intakes.push(intake)
  }

  /**
   * Publishes the items of one request; answers stand in the order of the items.
   * @throws HomeportError what an intake refuses the whole request with, or `setting_limit` for more messages than one
   * request may bring; then no plain message was published either.
   */
  publish(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemAnswer[]> {
    refuseTooMany(items.length)
    const isPlain = items.every((item) => this.#intakeOf(item) === undefined)
    return isPlain ? this.#publishPlain(publisher, items) : this.#publishShares(publisher, items)
  }

  #intakeOf(item: PublishItem): Intake | undefined {
    return this.#intakes.find((intake) => intake.claims(item))
  }

  async #publishShares(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemAnswer[]> {
    const answers: ItemAnswer[] = new Array(items.length)
    const shares = this.#shares(items)
    for (const [intake, indexes] of shares) {
      const share = indexes.map((index) => items[index] as PublishItem)
      const given = intake ? await intake.submit(publisher, share) : await this.#publishPlain(publisher, share)
      indexes.forEach((index, at) => {
        answers[index] = given[at] as ItemAnswer
      })
    }
    return answers
  }

  /** The error that a request ends with which cannot be read, although some of its items show whom they belong to. */
  refusal(items: readonly PublishItem[], error: HomeportError): HomeportError {
    for (const item of items) {
      const own = this.#intakeOf(item)?.refusal?.(item, error)
      if (own) return own
    }
    return error
  }

  /** Which items belong to whom; the plain ones, under `undefined`, come last. */
  #shares(items: readonly PublishItem[]): readonly (readonly [Intake | undefined, readonly number[]])[] {
    const shares = new Map<Intake | undefined, number[]>(this.#intakes.map((intake) => [intake, []]))
    shares.set(undefined, [])
    items.forEach((item, index) => {
      shares.get(this.#intakeOf(item))?.push(index)
    })
    return [...shares].filter(([, indexes]) => indexes.length > 0)
  }

  async #publishPlain(publisher: Publisher, items: readonly PublishItem[]): Promise<readonly ItemAnswer[]> {
    const { clock, limits, store } = this.#deps
    const now = clock.now()
    const drafting = { accountId: publisher.caller.accountId, callerIp: publisher.ip, now, limits }
    const reading = readGroups(store, drafting.accountId, items)
    const groups = reading instanceof Promise ? await reading : reading
    if (groups.size > 0) {
      refuseTooMany(countMessages(items, groups))
      refuseTooMuch(contentBytes(items, groups))
    }
    const answers: ItemAnswer[] = []
    let drafts: (ItemDraft | HomeportError)[] = []
    let entries = 0
    const slice = items.length > 1 ? new TimeSlice() : undefined
    for (const item of items) {
      const draft = attempt(() => this.#draft(item, drafting, groups))
      drafts.push(draft)
      if (!(draft instanceof HomeportError)) entries += draft.entries.length
      if (entries >= BATCH_ENTRIES) {
        for (const answer of await this.#commit(drafts, now)) answers.push(answer)
        drafts = []
        entries = 0
      }
      if (slice?.isOver) await slice.rest()
    }
    if (answers.length === 0) return this.#commit(drafts, now)
    return answers.concat(await this.#commit(drafts, now))
  }

  #draft(item: PublishItem, drafting: Drafting, groups: UrlGroups): ItemDraft {
    const draft = draftItem(item, drafting, groups)
    refuseForbiddenItem(
      draft.entries.map(({ message }) => message.url),
      item.headers,
      this.#deps.targets,
    )
    return draft
  }

  /** Stores the messages of some items in one transaction, and answers for the items. */
  async #commit(drafts: readonly (ItemDraft | HomeportError)[], now: number): Promise<ItemAnswer[]> {
    const entries = drafts.flatMap((draft) => (draft instanceof HomeportError ? [] : draft.entries))
    const published = await this.#store(entries, now)
    this.#deps.offer(offersOf(freshOf(entries, published.duplicateOf), published))
    let next = 0
    return drafts.map((draft) => {
      if (draft instanceof HomeportError) return draft
      const replies = draft.entries.map((entry) => replyTo(entry, published.duplicateOf[next++]))
      return draft.kind === 'group' ? replies : (replies[0] as PublishReply)
    })
  }

  #store(entries: readonly PublishEntry[], now: number): Promise<Published> | Published {
    if (entries.length === 0) return NOTHING_PUBLISHED
    return this.#deps.store.run(messagesPublish.publish, { entries, now })
  }
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
  { message: { message_id: messageId, url } }: PublishEntry,
  duplicateOf: string | undefined,
): PublishReply {
  return duplicateOf === undefined ? { messageId, url } : { messageId: duplicateOf, url, deduplicated: true }
}
