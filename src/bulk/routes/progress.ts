import { Readable } from 'node:stream'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Call, type Reply, reply } from '../../http/index.js'
import * as bulkActionTransactions from '../transactions/bulk-action.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { bulkAction } from './answers.js'
import type { RouteDeps } from './creation.js'

type BulkActionRow = bulkActionTransactions.BulkActionRow

/** Interval of keepalive comments, so that no proxy closes an idle connection. */
const KEEPALIVE_MS = 15_000
/** Interval between checks of the credentials of a reader. */
const RECHECK_CREDENTIALS_MS = 15_000
/** Interval between reads of an action that another node processes: only that one notices each step. */
const ELSEWHERE_MS = 1_000
/** Minimum time between events: nobody reads faster. */
const EVENT_INTERVAL_MS = 100

/** Streams of one account at a node: each reads its action now and then. */
const MOST_STREAMS = 100

const EMPTY_BODY = new Uint8Array()
const EVENT_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // nginx would buffer some kilobytes of events.
  'x-accel-buffering': 'no',
  // A stopping server must not wait for this connection.
  connection: 'close',
} as const

/** The caller that reads the events. */
type Reader = Pick<Call, 'headers' | 'signal' | 'isStillAllowed'>

/**
 * Streams the progress of actions as server-sent events: `progress` at once and after changes, `end` when one is over.
 * The stream closes after `end`, when the reader disconnects or loses its access, and when the server stops. Each event
 * holds the whole action, so a reader that reconnects misses nothing. Any node streams any action. `EventSource` reconnects after every close; a
 * reader that has seen `end` gets 204, which stops it.
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
    if (isOver(action) && call.headers['last-event-id'] === eventId(action)) return reply(204, EMPTY_BODY)
    const { account_id: accountId } = action
    if ((this.#open.get(accountId) ?? 0) >= MOST_STREAMS)
      throw new HomeportError('too_many_progress_readers', { most: MOST_STREAMS })
    this.#count(accountId, 1)
    const { signal } = call
    const stream = Readable.from(events(this.#deps, action, call, signal))
    // Also for a stream that is never read: one behind other answers of its connection.
    stream.once('close', () => this.#count(accountId, -1))
    if (signal.aborted) stream.destroy()
    else signal.addEventListener('abort', () => stream.destroy(), { once: true })
    return reply(200, stream, EVENT_HEADERS)
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
  { worker, store, clock, cluster }: RouteDeps,
  { account_id: accountId, action_id: actionId, seq }: BulkActionRow,
  reader: Pick<Reader, 'isStillAllowed'>,
  gone: AbortSignal,
): AsyncGenerator<string> {
  const isHere = ({ owner }: BulkActionRow): boolean => owner === cluster.incarnation
  const changes = new ChangeSignal(worker, seq, gone)
  try {
    let sent = ''
    let keepAliveAt = 0
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
      else if (data !== sent) yield event('progress', current, data)
      else if (isHere(current) || clock.now() >= keepAliveAt) yield ': still there\n\n'
      if (data !== sent || clock.now() >= keepAliveAt) keepAliveAt = clock.now() + KEEPALIVE_MS
      if (isOver(current) || !(await changes.next(clock, isHere(current) ? KEEPALIVE_MS : ELSEWHERE_MS))) return
      sent = data
    }
  } finally {
    changes.close()
  }
}

/** Waits for changes of an action. */
class ChangeSignal {
  #wake: () => void = () => undefined
  #hasChanged = false
  #isOver: boolean
  readonly #unwatch: () => void

  constructor(worker: RouteDeps['worker'], seq: number, gone: AbortSignal) {
    this.#isOver = gone.aborted || worker.isStopped
    this.#unwatch = worker.watch(seq, (action) => {
      if (action === undefined) this.#end()
      this.#hasChanged = true
      this.#wake()
    })
    gone.addEventListener('abort', () => this.#end(), { once: true })
  }

  #end(): void {
    this.#isOver = true
    this.#wake()
  }

  /** Resolves on a change or after this time at the latest; with false when the stream should close. */
  async next(clock: RouteDeps['clock'], withinMs: number): Promise<boolean> {
    await this.#pause(clock, EVENT_INTERVAL_MS, () => this.#isOver)
    await this.#pause(clock, withinMs, () => this.#isOver || this.#hasChanged)
    this.#hasChanged = false
    return !this.#isOver
  }

  async #pause(clock: RouteDeps['clock'], ms: number, isDone: () => boolean): Promise<void> {
    if (isDone()) return
    await new Promise<void>((resolve) => {
      const timer = clock.after(ms, resolve)
      this.#wake = () => {
        if (!isDone()) return
        timer.cancel()
        resolve()
      }
    })
  }

  close(): void {
    this.#unwatch()
  }
}
