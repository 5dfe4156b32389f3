import { type Expectation, grouped, type QueueLedger } from './queue-ledger.js'
import type { StoredMessage } from './queue-ledger-store.js'

/** Everything that a server which keeps its word never does. */
export interface Breaches {
  /** Acknowledged messages that did not end as their publisher made them: what was expected, and what was found. */
  readonly wrongEnds: readonly (readonly [messageId: string, expected: Expectation, found: string])[]
  /** Requests that came after the acknowledged cancellation of their message. */
  readonly afterCancel: readonly unknown[]
  /** Attempts that came twice without a crash between. */
  readonly unexplained: readonly unknown[]
  readonly outOfOrder: readonly unknown[]
  readonly tornBatches: readonly unknown[]
  readonly doubleCallbacks: readonly unknown[]
  readonly missingCallbacks: readonly unknown[]
  /** Paths at which more messages succeeded than one. */
  readonly repeated: readonly unknown[]
  /** Requests of messages that the store does not know. */
  readonly strangers: readonly unknown[]
  /** Schedules that did not fire as often as they were due: the id, and both numbers. */
  readonly wrongFires: readonly (readonly [scheduleId: string, expected: number, found: number])[]
}

/** What a server that keeps its word has done. */
export const NO_BREACHES: Breaches = {
  wrongEnds: [],
  afterCancel: [],
  unexplained: [],
  outOfOrder: [],
  tornBatches: [],
  doubleCallbacks: [],
  missingCallbacks: [],
  repeated: [],
  strangers: [],
  wrongFires: [],
}

/** What the ledger and the store say together. */
export interface Account {
  readonly breaches: Breaches
  /** How many messages there were, how they ended, and how often an attempt came twice, for people. */
  readonly summary: string
}

/** What an acknowledged message came to, by the store and the destinations together. */
function endOf(stored: StoredMessage | undefined, successes: ReadonlySet<string>): string {
  if (!stored) return 'lost'
  switch (stored.state) {
    case 'delivered':
      return successes.has(stored.message_id) ? 'delivered' : 'delivered, and never arrived'
    case 'failed':
      return successes.has(stored.message_id) ? 'dead, and arrived' : 'dead'
    case 'held':
      return 'stuck'
    default:
      return stored.state
  }
}

/**
 * Holds the ledger against the store of a server that has come to rest: acknowledged = delivered + dead + cancelled +
 * pending, each as its publisher made it.
 */
export function accountOf(ledger: QueueLedger, stored: readonly StoredMessage[]): Account {
  const byId = new Map(stored.map((message) => [message.message_id, message]))
  const successes = new Set(ledger.arrivals.filter(({ isSuccess }) => isSuccess).map(({ messageId }) => messageId))
  const ends = [...ledger.accepted].map(
    ([messageId, expected]) => [messageId, expected, endOf(byId.get(messageId), successes)] as const,
  )
  const counts = [...grouped(ends, ([, , end]) => end)].map(([end, list]) => `${list.length} ${end}`)
  const duplicates = `${ledger.duplicates().length} attempts arrived twice`
  return {
    summary: [`${ledger.accepted.size} acknowledged`, ...counts, duplicates].join(', '),
    breaches: {
      wrongEnds: ends.filter(([, expected, end]) => expected !== end),
      afterCancel: ledger.broken,
      unexplained: ledger.unexplained(),
      outOfOrder: ledger.outOfOrder(),
      tornBatches: ledger.tornBatches(),
      doubleCallbacks: ledger.doubleCallbacks(),
      missingCallbacks: ledger.missingCallbacks(),
      repeated: ledger.repeated(),
      strangers: ledger.arrivals.filter(({ messageId }) => !byId.has(messageId)),
      wrongFires: wrongFires(ledger, stored),
    },
  }
}

function wrongFires(ledger: QueueLedger, stored: readonly StoredMessage[]): Breaches['wrongFires'] {
  const fired = grouped(stored, ({ schedule_id }) => schedule_id)
  return [...ledger.fires]
    .map(([scheduleId, expected]) => [scheduleId, expected, fired.get(scheduleId)?.length ?? 0] as const)
    .filter(([, expected, found]) => expected !== found)
}
