import type { Clock } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import { DUE, type DueHint, type KeyName } from '../peer-messages.js'
import type { PendingRow } from '../transactions/messages.js'
import type { Place } from './entry.js'

/** Only messages due within this time are hinted. Owners hold messages due within 60 s, and their clocks may be ahead. */
const HINTED_MS = 65_000
/** Most messages, and most keys, of one hint. */
const MAX_PLACES = 1_000

interface Hint {
  readonly places: Place[]
  /** `<account>/<flow-control key>` to account and key. */
  readonly keys: Map<string, KeyName>
}

/** What hints are built from. */
export interface HintsDeps {
  readonly cluster: Pick<Cluster, 'hint'>
  readonly clock: Clock
  /** Whether a partition is about to change its owner. Its hints wait for the new owner. */
  readonly isLeaving: (partition: number) => boolean
}

/**
 * Sends hints about messages that were committed here to the nodes that own them: the places of messages that are due
 * soon, and the flow-control keys whose limits the messages set. The hints of a tick are sent together, one for each
 * partition. If a hint is lost, the due sweep of the owner finds the messages.
 */
export class Hints {
  readonly #deps: HintsDeps
  readonly #byPartition = new Map<number, Hint>()
  #isScheduled = false

  constructor(deps: HintsDeps) {
    this.#deps = deps
  }

  /** Adds a message of another node's partition. */
  addRow(row: PendingRow): void {
    // A message of a queue sets limits when it is published (`held`), not at its turn.
    const setsLimits = row.flow_key !== null && (row.queue === null || row.held) && row.config.includes('"flow":')
    if (setsLimits && row.flow_key !== null) this.addKeys(row.partition, [[row.account_id, row.flow_key]])
    if (!row.held) this.add(row.partition, { nextAt: row.next_at, seq: row.seq })
  }

  /** Adds keys of another node's partition whose limits have changed. */
  addKeys(partition: number, keys: readonly KeyName[]): void {
    for (const [accountId, key] of keys) this.#of(partition).keys.set(`${accountId}/${key}`, [accountId, key])
  }

  /** Adds the place of a message of another node's partition. */
  add(partition: number, place: Place): void {
    if (place.nextAt <= this.#deps.clock.now() + HINTED_MS) this.#of(partition).places.push(place)
  }

  /** Discards the hints of a partition that this node owns again, because it loads the messages from the store. */
  forget(partition: number): void {
    this.#byPartition.delete(partition)
  }

  /** Sends the hints at the end of this tick. */
  flushSoon(): void {
    if (this.#isScheduled || this.#byPartition.size === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  #of(partition: number): Hint {
    let hint = this.#byPartition.get(partition)
    if (!hint) {
      hint = { places: [], keys: new Map() }
      this.#byPartition.set(partition, hint)
    }
    this.flushSoon()
    return hint
  }

  #flush(): void {
    for (const [partition, { places, keys }] of this.#byPartition) {
      if (this.#deps.isLeaving(partition)) continue
      this.#byPartition.delete(partition)
      const all = [...keys.values()]
      for (let from = 0; from < Math.max(places.length, all.length); from += MAX_PLACES) {
        const to = from + MAX_PLACES
        const hint: DueHint = { partition, places: places.slice(from, to), keys: all.slice(from, to) }
        this.#deps.cluster.hint(partition, DUE, hint)
      }
    }
  }
}
