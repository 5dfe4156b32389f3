import type { TargetPolicy } from '../../base/index.js'
import { bearsOnMessage } from '../headers.js'
import type { PublishItem } from '../types.js'
import { refuseForbiddenItem } from './destination.js'
import { type MessageTemplate, templateOf } from './draft.js'
import type { SettingLimits } from './settings.js'

/** Number of destinations whose last template is kept. When it is reached, all are dropped. */
const MOST = 500
/** A template is kept only if the destination and headers of its item have at most this many characters. */
const LONGEST = 2_000

/** A template, and the queue and headers that it was made from. */
interface Kept {
  readonly template: MessageTemplate
  readonly queue: string | undefined
  /** The headers that affect the message, as a flat list of names and values. */
  readonly headers: readonly string[]
}

/** An item, and its template. */
interface Last {
  readonly destination: string
  readonly queue: string | undefined
  readonly headers: PublishItem['headers']
  readonly template: MessageTemplate
}

/**
 * Makes the templates of publications to URLs, and caches the last one of each destination: publishers repeat their
 * headers, and reading and checking all headers is a tenth of the work of a publication.
 */
export class Templates {
  readonly #limits: SettingLimits
  readonly #targets: TargetPolicy
  readonly #kept = new Map<string, Kept>()
  /** The previous item. Items of a batch share their headers object. */
  #last: Last | undefined

  /** @param targets which destinations are forbidden. */
  constructor(limits: SettingLimits, targets: TargetPolicy) {
    this.#limits = limits
    this.#targets = targets
  }

  /**
   * Returns the template of an item, from the cache if possible.
   * @param now Unix milliseconds.
   * @throws HomeportError with the problem of the item.
   */
  of(item: PublishItem, now: number): MessageTemplate {
    if (this.#last && isLike(this.#last, item)) return this.#last.template
    const { destination, queue, headers } = item
    const kept = this.#kept.get(destination)
    const template = kept && isMadeOf(kept, item) ? kept.template : this.#make(item, now)
    // The body, which may be large, is not kept.
    this.#last = { destination, queue, headers, template }
    return template
  }

  #make(item: PublishItem, now: number): MessageTemplate {
    const template = templateOf(item, now, this.#limits)
    refuseForbiddenItem([template.destination.url], item.headers, this.#targets)
    if (mayRecur(template)) this.#keep(item, template)
    return template
  }

  #keep({ destination, queue, headers }: PublishItem, template: MessageTemplate): void {
    const parts: string[] = []
    let length = destination.length
    for (const name in headers) {
      if (!bearsOnMessage(name)) continue
      const value = headers[name] ?? ''
      parts.push(name, value)
      length += name.length + value.length
    }
    if (length > LONGEST) return
    if (this.#kept.size >= MOST) this.#kept.clear()
    this.#kept.set(destination, { template, queue, headers: parts })
  }
}

/**
 * Whether another item may have the same template. A time must be checked for each item, a deduplication id and a trace
 * belong to one message, and with `forwardAll` every header affects the message.
 */
const mayRecur = ({ settings: { notBefore, dedupId, forwardAll }, headers }: MessageTemplate): boolean =>
  notBefore === undefined && dedupId === undefined && !forwardAll && headers.Traceparent === undefined

const isLike = (last: Last, item: PublishItem): boolean =>
  last.headers === item.headers && last.destination === item.destination && last.queue === item.queue

function isMadeOf(kept: Kept, { queue, headers }: PublishItem): boolean {
  if (queue !== kept.queue) return false
  let next = 0
  for (const name in headers) {
    if (!bearsOnMessage(name)) continue
    if (kept.headers[next] !== name || kept.headers[next + 1] !== headers[name]) return false
    next += 2
  }
  return next === kept.headers.length
}
