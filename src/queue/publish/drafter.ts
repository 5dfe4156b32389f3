import type { TargetPolicy } from '../../base/index.js'
import type { PublishItem } from '../types.js'
import { groupNameOf, refuseForbiddenItem } from './destination.js'
import { type Drafting, messageOf } from './draft.js'
import { draftItem, type ItemDraft, type UrlGroups } from './groups.js'
import type { SettingLimits } from './settings.js'
import { Templates } from './templates.js'

/** Turns the items of publish requests into messages. */
export class Drafter {
  readonly #templates: Templates
  readonly #targets: TargetPolicy

  /** @param targets which destinations are forbidden. */
  constructor(limits: SettingLimits, targets: TargetPolicy) {
    this.#templates = new Templates(limits, targets)
    this.#targets = targets
  }

  /** @throws HomeportError with the problem of the item, or of the URL group that it names. */
  draft(item: PublishItem, drafting: Drafting, groups: UrlGroups): ItemDraft {
    if (groupNameOf(item.destination) !== undefined) return this.#ofGroup(item, drafting, groups)
    const template = this.#templates.of(item, drafting.now)
    return { kind: 'single', entries: [messageOf(template, item.body, drafting)] }
  }

  #ofGroup(item: PublishItem, drafting: Drafting, groups: UrlGroups): ItemDraft {
    const draft = draftItem(item, drafting, groups)
    const urls = draft.entries.map(({ message }) => message.url)
    refuseForbiddenItem(urls, item.headers, this.#targets)
    return draft
  }
}
