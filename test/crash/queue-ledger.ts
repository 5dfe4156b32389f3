/**
 * What clients and destinations of the queue have observed: every acknowledgement of the server, and every request that
 * reached a destination. The ledger lives in the test's process, which is never killed.
 */

/** The outcome that the publisher of a message expects. */
export type Expectation = 'delivered' | 'dead' | 'cancelled' | 'pending'

/** A request that a destination has received. */
export interface Arrival {
  readonly messageId: string
  /** Failed attempts before this one. */
  readonly retried: number
  /** The path of the request, without the first slash. */
  readonly path: string
  readonly scheduleId: string | undefined
  /** In which life of the server it arrived: 0 for the first. */
  readonly life: number
  /** Whether it was answered with success. */
  readonly isSuccess: boolean
  /** The message that a callback reports, and the attempt. */
  readonly about: { readonly messageId: string; readonly retried: number } | undefined
}

/** Messages that were published with one debounce key. */
export interface Burst {
  /** In their order. */
  readonly acknowledged: string[]
  /** Messages that an answer has named as replaced. */
  readonly replaced: Set<string>
  /** Whether all were acknowledged. If not, an unacknowledged message may have replaced the newest. */
  isComplete: boolean
}

/** Acknowledgements and arrivals, and checks of one against the other. */
export class QueueLedger {
  /** Messages whose acceptance was acknowledged, by id. */
  readonly accepted = new Map<string, Expectation>()
  /**
   * Batches that were sent, acknowledged or not, as the paths of their messages. A batch is accepted as a whole or not.
   */
  readonly batches: (readonly string[])[] = []
  /** Messages whose cancellation was acknowledged. No request of theirs may arrive afterwards. */
  readonly sealed = new Set<string>()
  /** How often the test made each schedule fire, by its id. */
  readonly fires = new Map<string, number>()
  /** Paths at which only one message may succeed: retried dead letters, and messages published twice. */
  readonly once = new Set<string>()
  /** Bursts by the path that all of their messages have. */
  readonly bursts = new Map<string, Burst>()
  /** Open requests of the flow-control key `narrow`, now and at most. Its parallelism is 2. */
  readonly narrow = { open: 0, most: 0 }
  readonly arrivals: Arrival[] = []
  /** Arrivals of sealed messages. Must stay empty. */
  readonly broken: Arrival[] = []
  /** How often the server has been killed so far. */
  life = 0

  /** Records an acknowledged message. */
  accept(messageId: string, expectation: Expectation): void {
    this.accepted.set(messageId, expectation)
  }

  /** Records a request that has reached a destination. */
  arrive(arrival: Arrival): void {
    this.arrivals.push(arrival)
    if (this.sealed.has(arrival.messageId)) this.broken.push(arrival)
  }

  /** Attempts that arrived more than once. */
  duplicates(): readonly (readonly Arrival[])[] {
    const attempts = grouped(this.arrivals, ({ messageId, retried }) => `${messageId} ${retried}`)
    return [...attempts.values()].filter((arrivals) => arrivals.length > 1)
  }

  /** Attempts that arrived twice in one life of the server: no crash explains them. */
  unexplained(): readonly (readonly Arrival[])[] {
    return this.duplicates().filter((arrivals) => new Set(arrivals.map(({ life }) => life)).size < arrivals.length)
  }

  /**
   * Arrivals out of order in their FIFO queue: of an earlier message than a previous arrival, or an earlier attempt of
   * the same message. A callback only has to arrive before the next message.
   */
  outOfOrder(): readonly Arrival[] {
    const newest = new Map<string, readonly [number: number, retried: number]>()
    return this.arrivals.filter(({ path, retried, about }) => {
      const [, queue, digits] = /^fifo(?:-callback)?\/(\w+)\/(\d+)$/.exec(path) ?? []
      if (queue === undefined) return false
      const number = Number(digits)
      const [lastNumber, lastRetried] = newest.get(queue) ?? [0, 0]
      const attempt = about ? (number > lastNumber ? 0 : lastRetried) : retried
      if (number < lastNumber || (number === lastNumber && attempt < lastRetried)) return true
      newest.set(queue, [number, attempt])
      return false
    })
  }

  /** Attempts that were reported by more than one callback message to the same path. */
  doubleCallbacks(): readonly string[] {
    const callbacks = this.arrivals.filter(({ about }) => about)
    const reports = grouped(callbacks, ({ path, about }) => `${path} about ${about?.messageId} ${about?.retried}`)
    const messages = (arrivals: readonly Arrival[]) => new Set(arrivals.map(({ messageId }) => messageId))
    return [...reports].filter(([, arrivals]) => messages(arrivals).size > 1).map(([key]) => key)
  }

  /** Attempts without their callback, and dead messages without a failure callback. */
  missingCallbacks(): readonly string[] {
    const reported = new Set(this.arrivals.map(({ about }) => about && `${about.messageId} ${about.retried}`))
    const attempts = this.arrivals.filter(({ path }) => /^(?:observed|flaky|dead|fifo)\//.test(path))
    const unreported = attempts
      .map(({ messageId, retried }) => `${messageId} ${retried}`)
      .filter((key) => !reported.has(key))
    const paths = new Set(this.arrivals.map(({ path }) => path))
    const dead = [...paths].filter((path) => path.startsWith('dead/'))
    return [...unreported, ...dead.filter((path) => !paths.has(path.replace('dead', 'failure')))]
  }

  /** Paths of `once` at which several messages have succeeded. */
  repeated(): readonly string[] {
    const successes = grouped(
      this.arrivals.filter(({ isSuccess, path }) => isSuccess && this.once.has(path)),
      ({ path }) => path,
    )
    const messages = (arrivals: readonly Arrival[]) => new Set(arrivals.map(({ messageId }) => messageId))
    return [...successes].filter(([, arrivals]) => messages(arrivals).size > 1).map(([path]) => path)
  }

  /** Bursts of which a replaced message arrived, or the newest did not. */
  wrongBursts(): readonly string[] {
    const arrived = grouped(this.arrivals, ({ path }) => path)
    const isWrong = ([path, { acknowledged, replaced, isComplete }]: [string, Burst]): boolean => {
      const ids = new Set((arrived.get(path) ?? []).map(({ messageId }) => messageId))
      const isLost = isComplete
        ? acknowledged.some((id) => !replaced.has(id) && !ids.has(id))
        : acknowledged.length > 0 && ids.size === 0
      return isLost || [...replaced].some((id) => ids.has(id))
    }
    return [...this.bursts].filter(isWrong).map(([path]) => path)
  }

  /** Batches of which some items arrived and others did not. */
  tornBatches(): readonly (readonly string[])[] {
    const arrived = new Set(this.arrivals.map(({ path }) => path))
    return this.batches.filter((paths) => new Set(paths.map((path) => arrived.has(path))).size > 1)
  }
}

/** Items by the value of a key, in their order. */
export function grouped<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}
