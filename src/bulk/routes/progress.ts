import { HomeportError } from '../../contract/errors/errors.js'
import { type Call, EventStream, type Reply, reply } from '../../http/index.js'
import * as bulkActionTransactions from '../transactions/bulk-action.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { bulkAction } from './answers.js'
import type { RouteDeps } from './creation.js'

type BulkActionRow = bulkActionTransactions.BulkActionRow

/** Interval between reads of an action that another node processes: only that node is notified of each step. */
const ELSEWHERE_MS = 1_000
/** Minimum time between events: people read no faster. */
const EVENT_INTERVAL_MS = 100
/** Maximum number of streams of one account at a node, because each one reads its action from the store. */
const MAX_STREAMS = 100

const EMPTY_BODY = new Uint8Array()

/** The caller that reads the events. */
type Reader = Pick<Call, 'headers' | 'signal' | 'isStillAllowed'>

/**
 * Streams the progress of actions as server-sent events: `progress` at once and after changes, `end` when one is over.
 * The stream closes after `end`, when the reader disconnects or loses its access, and when the server stops. Each event
 * holds the whole action, so a reader that reconnects misses nothing. Any node streams any action. `EventSource` reconnects
 * after every close; a reader that has seen `end` gets 204, which stops it.
 */
export class ProgressStreams {
  readonly #deps: RouteDeps
  /** Open streams by account. */
  readonly #open = new Map<string, number>()

  constructor(deps: RouteDeps) {
    this.#deps = deps
  }

  /** @throws HomeportError `too_many_progress_readers` */
  open(action: BulkActionRow, call: Reader): Reply {
    const { account_id: accountId } = action
    if (isOver(action) && call.headers['last-event-id'] === eventId(action)) return reply(204, EMPTY_BODY)
    if ((this.#open.get(accountId) ?? 0) >= MAX_STREAMS)
      throw new HomeportError('too_many_progress_readers', { most: MAX_STREAMS })
    const { worker, clock } = this.#deps
    const stream = new EventStream(clock, call)
    const unwatch = worker.watch(action.seq, (changed) => (changed ? stream.notify() : stream.end()))
    if (worker.isStopped) stream.end()
    this.#count(accountId, 1)
    return stream.reply(events(this.#deps, action, stream), () => {
      unwatch()
      this.#count(accountId, -1)
    })
  }

  #count(accountId: string, change: 1 | -1): void {
    const open = (this.#open.get(accountId) ?? 0) + change
    if (open === 0) this.#open.delete(accountId)
    else this.#open.set(accountId, open)
  }
}

const isOver = ({ state }: BulkActionRow): boolean => state === 'finished' || state === 'aborted'

/** Identifies the progress; stable once the action is over. */
const eventId = (action: BulkActionRow): string => `${action.state}-${bulkActionTransactions.decidedItems(action)}`

function event(name: 'progress' | 'end', action: BulkActionRow, data: string): string {
  return `event: ${name}\nid: ${eventId(action)}\ndata: ${data}\n\n`
}

async function* events(
  { store, cluster }: RouteDeps,
  { account_id: accountId, action_id: actionId }: BulkActionRow,
  stream: EventStream,
): AsyncGenerator<string> {
  for (let sent = ''; ; ) {
    const current = await store.run(bulkRead.action, { accountId, actionId })
    if (!current) return
    const data = JSON.stringify(bulkAction(current))
    if (isOver(current)) return yield event('end', current, data)
    if (data !== sent) yield event('progress', current, data)
    sent = data
    const isHere = current.owner === cluster.incarnation
    const comment = await stream.next(EVENT_INTERVAL_MS, isHere ? undefined : ELSEWHERE_MS)
    if (comment === undefined) return
    if (comment !== '') yield comment
  }
}
