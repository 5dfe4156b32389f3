import { Readable } from 'node:stream'
import { type Call, type Reply, reply } from '../../http/index.js'
import * as bulkActionTransactions from '../transactions/bulk-action.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { bulkAction } from './answers.js'
import type { RouteDeps } from './creation.js'

type BulkActionRow = bulkActionTransactions.BulkActionRow

/** A line without meaning is sent after so long, so that nothing between takes the connection for dead. */
const KEEPALIVE_MS = 15_000
/** The credentials of a reader are checked again after so long. */
const RECHECK_CREDENTIALS_MS = 15_000
/** The most events a second: nobody can read faster. */
const BETWEEN_EVENTS_MS = 100

const NOTHING = new Uint8Array()

/** Who reads the events. */
type Reader = Pick<Call, 'headers' | 'signal' | 'isStillAllowed'>

/**
 * The progress of an action as server-sent events: `progress` at once and after changes, `end` when it is over. The
 * stream ends after that, when the reader goes or may not read any more, and when the server stops. Each event holds the
 * whole action, so a reader that comes again misses nothing. An `EventSource` comes again after every end; who has seen
 * the `end` gets 204, after which it stays away.
 */
export function progressOf(deps: RouteDeps, action: BulkActionRow, call: Reader): Reply {
  if (isOver(action) && call.headers['last-event-id'] === eventId(action)) return reply(204, NOTHING)
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    // nginx would hold the events back until there are some kilobytes of them.
    'x-accel-buffering': 'no',
    // A server that stops must not wait for a connection on which nothing will come any more.
    connection: 'close',
  }
  return reply(200, Readable.from(events(deps, action, call)), headers)
}

const isOver = ({ state }: BulkActionRow): boolean => state === 'finished' || state === 'aborted'

/** How far the action is; the same for one that is over, whoever asks when. */
const eventId = (action: BulkActionRow): string => `${action.state}-${bulkActionTransactions.decidedItems(action)}`

function event(name: 'progress' | 'end', action: BulkActionRow, data: string): string {
  return `event: ${name}\nid: ${eventId(action)}\ndata: ${data}\n\n`
}

async function* events(
  { worker, store, clock }: RouteDeps,
  { account_id: accountId, action_id: actionId, seq }: BulkActionRow,
  reader: Reader,
): AsyncGenerator<string> {
  const changes = new ChangeSignal(worker, seq, reader.signal)
  try {
    let shown = ''
    let recheckAt = clock.now() + RECHECK_CREDENTIALS_MS
    for (;;) {
      if (clock.now() >= recheckAt) {
        if (!(await reader.isStillAllowed())) return
        recheckAt = clock.now() + RECHECK_CREDENTIALS_MS
      }
      const current = await store.run(bulkRead.action, { accountId, actionId })
      if (!current) return
      const data = JSON.stringify(bulkAction(current))
      if (isOver(current)) yield event('end', current, data)
      else yield data === shown ? ': still there\n\n' : event('progress', current, data)
      if (isOver(current) || !(await changes.next(clock))) return
      shown = data
    }
  } finally {
    changes.close()
  }
}

/** Waits for something to tell. */
class ChangeSignal {
  #wake: () => void = () => undefined
  #isFresh = false
  #isOver: boolean
  readonly #unwatch: () => void

  constructor(worker: RouteDeps['worker'], seq: number, gone: AbortSignal) {
    this.#isOver = gone.aborted || worker.isStopped
    this.#unwatch = worker.watch(seq, (action) => {
      if (action === undefined) this.#end()
      this.#isFresh = true
      this.#wake()
    })
    gone.addEventListener('abort', () => this.#end(), { once: true })
  }

  #end(): void {
    this.#isOver = true
    this.#wake()
  }

  /**
   * Resolves when there is something to tell, or has been nothing for long; with false when nobody listens any more.
   */
  async next(clock: RouteDeps['clock']): Promise<boolean> {
    await this.#pause(clock, BETWEEN_EVENTS_MS, () => this.#isOver)
    await this.#pause(clock, KEEPALIVE_MS, () => this.#isOver || this.#isFresh)
    this.#isFresh = false
    return !this.#isOver
  }

  async #pause(clock: RouteDeps['clock'], ms: number, isEnough: () => boolean): Promise<void> {
    if (isEnough()) return
    await new Promise<void>((resolve) => {
      const timer = clock.after(ms, resolve)
      this.#wake = () => {
        if (!isEnough()) return
        timer.cancel()
        resolve()
      }
    })
  }

  close(): void {
    this.#unwatch()
  }
}
