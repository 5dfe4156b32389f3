import type { Clock } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import { DUE, type DueHint, type KeyName } from '../peer-messages.js'
import type { PendingRow } from '../transactions/messages.js'
import type { Place } from './entry.js'

/** An owner holds what is due within its window, whose clock may be ahead of ours. */
const HINTED_MS = 65_000
/** Messages of one hint. */
const MOST_PLACES = 1_000

interface Hint {
  readonly places: Place[]
  /** `<account>/<flow-control key>` to account and key. */
  readonly keys: Map<string, KeyName>
}

/** What hints are built from. */
export interface HintsDeps {
  readonly cluster: Pick<Cluster, 'hint'>
  readonly clock: Clock
  /** Whether a partition is about to have another owner: its hints wait for that. */
  readonly isLeaving: (partition: number) => boolean
}

/**
 * Hints to the owners of messages that were committed here: the places of those that are due soon, and the flow-control keys
 * whose limits they set. Those of a tick leave together, one for each partition. A lost hint is found by the due sweep.
 */
export class Hints {
  readonly #deps: HintsDeps
  readonly #byPartition = new Map<number, Hint>()
  #isScheduled = false

  constructor(deps: HintsDeps) {
    this.#deps = deps
  }

  /** A message of another node's partition. */
  addRow(row: PendingRow): void {
    // The message of a queue sets limits when it is published.
    const setsLimits = row.flow_key !== null && (row.queue === null || row.held) && row.config.includes('"flow":')
    if (setsLimits && row.flow_key !== null) this.addKeys(row.partition, [[row.account_id, row.flow_key]])
    if (!row.held) this.add(row.partition, { nextAt: row.next_at, seq: row.seq })
  }

  /** Keys of another node's partition, whose limits have changed. */
  addKeys(partition: number, keys: readonly KeyName[]): void {
    for (const [accountId, key] of keys) this.#of(partition).keys.set(`${accountId}/${key}`, [accountId, key])
  }

  /** The place of a message of another node's partition. */
  add(partition: number, place: Place): void {
    if (place.nextAt <= this.#deps.clock.now() + HINTED_MS) this.#of(partition).places.push(place)
  }

  /** This node owns a partition again, and loads its messages. */
  forget(partition: number): void {
    this.#byPartition.delete(partition)
  }

  /** Sends at the end of this tick. */
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
      for (let from = 0; from < Math.max(places.length, all.length); from += MOST_PLACES) {
        const to = from + MOST_PLACES
        const hint: DueHint = { partition, places: places.slice(from, to), keys: all.slice(from, to) }
        this.#deps.cluster.hint(partition, DUE, hint)
      }
    }
  }
}
