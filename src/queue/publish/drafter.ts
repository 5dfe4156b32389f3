import type { TargetPolicy } from '../../base/index.js'
import { areSameHeaders } from '../headers.js'
import type { PublishEntry } from '../transactions/messages.js'
import type { PublishItem } from '../types.js'
import { groupNameOf, refuseForbiddenItem } from './destination.js'
import { type Drafting, type MessageTemplate, messageOf, templateOf } from './draft.js'
import { draftItem, type ItemDraft, type UrlGroups } from './groups.js'

/** Turns the items of one request into messages. Items that differ from the one before only in their body share its checks. */
export class Drafter {
  readonly #drafting: Drafting
  readonly #groups: UrlGroups
  readonly #targets: TargetPolicy
  #last: { readonly item: PublishItem; readonly template: MessageTemplate } | undefined

  /** @param targets which destinations are forbidden. */
  constructor(drafting: Drafting, groups: UrlGroups, targets: TargetPolicy) {
    this.#drafting = drafting
    this.#groups = groups
    this.#targets = targets
  }

  /** @throws HomeportError with the problem of the item, or of the URL group that it names. */
  draft(item: PublishItem): ItemDraft {
    if (this.#last && isAlike(item, this.#last.item)) return this.#single(this.#last.template, item)
    if (groupNameOf(item.destination) !== undefined) return this.#ofGroup(item)
    const template = templateOf(item, this.#drafting)
    refuseForbiddenItem([template.message.url], item.headers, this.#targets)
    this.#last = { item, template }
    return this.#single(template, item)
  }

  #single(template: MessageTemplate, { body }: PublishItem): ItemDraft {
    const entry: PublishEntry = messageOf(template, body, this.#drafting)
    return { kind: 'single', entries: [entry] }
  }

  #ofGroup(item: PublishItem): ItemDraft {
    const draft = draftItem(item, this.#drafting, this.#groups)
    const urls = draft.entries.map(({ message }) => message.url)
    refuseForbiddenItem(urls, item.headers, this.#targets)
    return draft
  }
}

const isAlike = (one: PublishItem, other: PublishItem): boolean =>
  one.destination === other.destination && one.queue === other.queue && areSameHeaders(one.headers, other.headers)
