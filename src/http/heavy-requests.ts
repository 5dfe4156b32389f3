import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { type Clock, OwnerConcurrency, systemClock, type Timer } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { onResponseOver } from './received-call.js'
import { isReply } from './route.js'

/** SQLite has one reader. A second request keeps it busy without gaps; more would only delay those of others. */
const MAX_AT_ONCE = 2
const MAX_WAITING = 1_000
/** Interval of checks that the client of a streamed answer reads. A piece may have megabytes, and a client may be slow. */
const CHECK_EVERY_MS = 2 * 60_000
/**
 * A client that has read nothing at this many checks in a row is disconnected, because other requests of its account wait
 * for its turn. One check is not enough: this process may have been paused itself.
 */
const MAX_SILENT_CHECKS = 2

/** A request over HTTP with its answer. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/**
 * Serves two heavy requests of each account at a time; further ones wait for their turn. So the requests of other accounts
 * wait behind two at most, however many one account sends.
 */
export class HeavyRequests {
  readonly #turns = new OwnerConcurrency(MAX_AT_ONCE)
  readonly #maxWaiting: number
  readonly #clock: Clock

  constructor(maxWaiting = MAX_WAITING, clock: Clock = systemClock) {
    this.#maxWaiting = maxWaiting
    this.#clock = clock
  }

  /**
   * Does the work of a request in its turn, unless its client has disconnected by then. If the answer is a stream, the turn
   * lasts until all of it is sent.
   * @throws HomeportError `too_many_heavy_requests`
   */
  async serve<Result>(accountId: string, exchange: Exchange, work: () => Promise<Result>): Promise<Result> {
    const tooMany = () => new HomeportError('too_many_heavy_requests', { most: this.#maxWaiting })
    if (this.#turns.waiting(accountId) >= this.#maxWaiting) throw tooMany()
    const end = await this.#turns.begin(accountId, (leave) =>
      onResponseOver(exchange.request, exchange.response, leave),
    )
    // The client has disconnected, so nobody gets this answer.
    if (!end) throw tooMany()
    try {
      const result = await work()
      // A stream reads more from the store as the client reads the answer.
      if (isReply(result) && result.value instanceof Readable) this.#onceEnded(exchange, end)
      else end()
      return result
    } catch (error) {
      end()
      throw error
    }
  }

  #onceEnded({ request, response }: Exchange, end: () => void): void {
    if (request.socket.destroyed || response.destroyed || response.writableFinished) {
      end()
      return
    }
    let timer: Timer | undefined
    const check = (before: number, silentChecks: number): void => {
      const unread = response.writableLength
      const silent = unread > 0 && unread === before ? silentChecks + 1 : 0
      if (silent >= MAX_SILENT_CHECKS) request.socket.destroy()
      else timer = this.#clock.after(CHECK_EVERY_MS, () => check(unread, silent))
    }
    check(0, 0)
    onResponseOver(request, response, () => {
      timer?.cancel()
      end()
    })
  }
}
