import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { PendingRow } from '../transactions/messages.js'
import * as messagesDue from '../transactions/messages-due.js'
import { type DuePage, sharedByLane } from '../transactions/messages-due.js'
import * as messagesSweep from '../transactions/messages-sweep.js'
import type { Load } from './coverage.js'
import { MAX_HELD_BODY_BYTES, type Place } from './entry.js'

/** Leaves out every body: each is read when its message is sent. */
const NO_BODY = -1
/** The first retry after damage spans this many messages, the next one half as many, and so on. */
const WIDEST_SPAN = 512

/**
 * Reads the page of a load and steps around damage in the store.
 *
 * If bodies of a page cannot be read, the page is read without them. Each body is read again when its message is sent,
 * and only that message fails. If rows cannot be read, the span of the read is halved until it contains only the
 * unreadable row, which is skipped. After that the span grows again.
 */
export class DueReader {
  readonly #store: Store
  readonly #onUnreadable: (place: Place) => void
  /** Messages that a read may scan; `undefined` while no damage was met. */
  #span: number | undefined

  /** @param onUnreadable called with each message that cannot be read. */
  constructor(store: Store, onUnreadable: (place: Place) => void) {
    this.#store = store
    this.#onUnreadable = onUnreadable
  }

  /** @throws HomeportError `store_damaged` when not even the due order can be read. */
  async read(load: Load): Promise<DuePage> {
    if (load.kind === 'strays') return (await this.#readUpTo(load)) ?? (await this.#readOneByOne(load))
    for (;;) {
      const until = this.#span === undefined ? load.until : await this.#placeAhead(load, this.#span)
      const page = await this.#readUpTo({ ...load, until })
      if (page) {
        this.#widen()
        return page
      }
      if (this.#span === 1) {
        this.#onUnreadable(until)
        return { rows: [], upTo: until }
      }
      this.#span = this.#span === undefined ? WIDEST_SPAN : this.#span / 2
    }
  }

  /** Reads the strays that can be read. The others were reported when an ordinary load met them. */
  async #readOneByOne(load: Extract<Load, { kind: 'strays' }>): Promise<DuePage> {
    const rows: PendingRow[] = []
    for (const seq of load.seqs) rows.push(...((await this.#readUpTo({ ...load, seqs: [seq] }))?.rows ?? []))
    return { rows, upTo: load.until }
  }

  #widen(): void {
    if (this.#span !== undefined) this.#span = this.#span < WIDEST_SPAN ? this.#span * 2 : undefined
  }

  async #placeAhead({ after, until }: Load, span: number): Promise<Place> {
    return (await this.#store.run(messagesDue.placeOf, { after, until, ahead: span - 1 })) ?? until
  }

  /** `undefined` when damage prevents the read. */
  async #readUpTo(load: Load): Promise<DuePage | undefined> {
    for (const largestBody of [MAX_HELD_BODY_BYTES, NO_BODY]) {
      try {
        return await readDue(this.#store, load, largestBody)
      } catch (error) {
        if (!isError(error, 'store_damaged')) throw error
      }
    }
    return undefined
  }
}

/** Reads the page of a load. Bodies of more than `largestBody` bytes are left out. */
export function readDue(store: Store, load: Load, largestBody = MAX_HELD_BODY_BYTES): Promise<DuePage> {
  const { ofAccount, ofAll, ofFlow, ofHost } = messagesDue
  const { after, until, limit, partitions } = load
  const range = { after, until, limit, largestBody, partitions }
  switch (load.kind) {
    case 'all':
      return store.run(ofAll, { ...range, exceptAccounts: load.exceptAccounts, exceptLanes: load.exceptLanes })
    case 'account':
      return store.run(ofAccount, { ...range, accountId: load.accountId, exceptLanes: load.exceptLanes })
    case 'strays':
      return store.run(messagesSweep.rows, { seqs: load.seqs, largestBody, upTo: until })
    case 'lane': {
      const { accountId } = load
      const shared = sharedByLane(load.lane, accountId)
      return 'host' in shared
        ? store.run(ofHost, { ...range, accountId, ...shared })
        : store.run(ofFlow, { ...range, accountId, ...shared })
    }
  }
}
