import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import * as messagesDue from '../transactions/messages-due.js'
import { type DuePage, partOf } from '../transactions/messages-due.js'
import type { Load } from './coverage.js'
import { LARGEST_HELD_BODY, type Place } from './entry.js'

/** No body is as small: all of them are read when their messages are sent. */
const NO_BODY = -1
/** A read that meets damage is tried again over so many messages, then over half as many, and so on. */
const WIDEST_SPAN = 512

/**
 * Reads what a load asks for, a page of it, around what is damaged in the store.
 *
 * A page whose bodies cannot be read is read without them: each is read again when its message is sent, and only that
 * message fails. Where rows themselves cannot be read, the span of a read is halved until the row that cannot be read
 * stands alone; that one is passed over. Spans grow again behind it.
 */
export class DueReader {
  readonly #store: Store
  readonly #passedOver: (place: Place) => void
  /** How many messages a read may look at; `undefined` as long as nothing damaged was met. */
  #span: number | undefined

  /** @param passedOver told of each message that cannot be read. */
  constructor(store: Store, passedOver: (place: Place) => void) {
    this.#store = store
    this.#passedOver = passedOver
  }

  /** @throws HomeportError `store_damaged` when not even the order of the messages can be read. */
  async read(load: Load): Promise<DuePage> {
    for (;;) {
      const until = this.#span === undefined ? load.until : await this.#placeAhead(load, this.#span)
      const page = await this.#readUpTo({ ...load, until })
      if (page) {
        this.#widen()
        return page
      }
      if (this.#span === 1) {
        this.#passedOver(until)
        return { rows: [], upTo: until }
      }
      this.#span = this.#span === undefined ? WIDEST_SPAN : this.#span / 2
    }
  }

  #widen(): void {
    if (this.#span !== undefined) this.#span = this.#span < WIDEST_SPAN ? this.#span * 2 : undefined
  }

  async #placeAhead({ after, until }: Load, span: number): Promise<Place> {
    return (await this.#store.run(messagesDue.placeOf, { after, until, ahead: span - 1 })) ?? until
  }

  /** `undefined` when something damaged is in the way. */
  async #readUpTo(load: Load): Promise<DuePage | undefined> {
    for (const largestBody of [LARGEST_HELD_BODY, NO_BODY]) {
      try {
        return await readDue(this.#store, load, largestBody)
      } catch (error) {
        if (!isError(error, 'store_damaged')) throw error
      }
    }
    return undefined
  }
}

/** Reads what a load asks for, a page of it; larger bodies are left out. */
export function readDue(store: Store, load: Load, largestBody = LARGEST_HELD_BODY): Promise<DuePage> {
  const { ofAccount, ofAll, ofFlow, ofHost } = messagesDue
  const { after, until, limit } = load
  const range = { after, until, limit, largestBody }
  switch (load.kind) {
    case 'all':
      return store.run(ofAll, { ...range, exceptAccounts: load.exceptAccounts, exceptLanes: load.exceptLanes })
    case 'account':
      return store.run(ofAccount, { ...range, accountId: load.accountId, exceptLanes: load.exceptLanes })
    case 'lane': {
      const { accountId } = load
      const part = partOf(load.lane, accountId)
      return 'host' in part
        ? store.run(ofHost, { ...range, accountId, ...part })
        : store.run(ofFlow, { ...range, accountId, ...part })
    }
  }
}
