import { type Expectation, grouped, type QueueLedger } from './queue-ledger.js'
import type { StoredMessage } from './queue-ledger-store.js'

/** Violations of the queue's guarantees. */
export interface Breaches {
  /** Acknowledged messages with an unexpected outcome: the expected and the actual one. */
  readonly wrongEnds: readonly (readonly [messageId: string, expected: Expectation, found: string])[]
  /** Requests that arrived after the acknowledged cancellation of their message. */
  readonly afterCancel: readonly unknown[]
  /** Attempts that arrived twice without a crash in between. */
  readonly unexplained: readonly unknown[]
  readonly outOfOrder: readonly unknown[]
  readonly tornBatches: readonly unknown[]
  readonly doubleCallbacks: readonly unknown[]
  readonly missingCallbacks: readonly unknown[]
  /** Paths at which more than one message succeeded. */
  readonly repeated: readonly unknown[]
  /** Bursts with one debounce key of which a replaced message arrived, or the newest did not. */
  readonly wrongBursts: readonly unknown[]
  /** Requests of messages that are not in the store. */
  readonly strangers: readonly unknown[]
  /** Schedules that did not fire as often as they were due: the id, the expected and the actual number. */
  readonly wrongFires: readonly (readonly [scheduleId: string, expected: number, found: number])[]
}

/** The result of a correct server. */
export const NO_BREACHES: Breaches = {
  wrongEnds: [],
  afterCancel: [],
  unexplained: [],
  outOfOrder: [],
  tornBatches: [],
  doubleCallbacks: [],
  missingCallbacks: [],
  repeated: [],
  wrongBursts: [],
  strangers: [],
  wrongFires: [],
}

/** The result of comparing the ledger with the store. */
export interface Account {
  readonly breaches: Breaches
  /** For people: the number of messages, their outcomes, and how many attempts arrived twice. */
  readonly summary: string
}

/** The outcome of an acknowledged message, from the store and the destinations. */
function endOf(stored: StoredMessage | undefined, successes: ReadonlySet<string>): string {
  if (!stored) return 'lost'
  switch (stored.state) {
    case 'delivered':
      return successes.has(stored.message_id) ? 'delivered' : 'delivered, and never arrived'
    case 'failed':
      return successes.has(stored.message_id) ? 'dead, and arrived' : 'dead'
    case 'held':
      return 'stuck'
    case 'canceled':
      return 'cancelled'
    default:
      return stored.state
  }
}

/**
 * Compares the ledger with the store of an idle server: acknowledged = delivered + dead + cancelled + pending, and each
 * message has the outcome that its publisher expects.
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
      wrongBursts: ledger.wrongBursts(),
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
