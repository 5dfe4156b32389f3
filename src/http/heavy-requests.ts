import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { type Clock, FewAtOnce, systemClock, type Timer } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { onceOver } from './received-call.js'
import { isReply } from './route.js'

/** SQLite has one reader: one request more keeps it busy, and further ones only make others wait. */
const MOST_AT_ONCE = 2
const MOST_WAITING = 1_000
/** How often it is looked whether the client of a streamed answer reads. A piece may have megabytes, and a client may be slow. */
const LOOK_EVERY_MS = 2 * 60_000
/**
 * A client that has taken nothing at this many looks in a row is disconnected: others of its account wait for its turn. One
 * look is not enough, because this process may have been paused itself.
 */
const MOST_SILENT_LOOKS = 2

/** A request over HTTP with its answer. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/**
 * Serves two heavy requests of each account at a time, so that the requests of others wait behind two at most, however many
 * one account sends. The rest waits for its turn.
 */
export class HeavyRequests {
  readonly #turns = new FewAtOnce(MOST_AT_ONCE)
  readonly #mostWaiting: number
  readonly #clock: Clock

  constructor(mostWaiting = MOST_WAITING, clock: Clock = systemClock) {
    this.#mostWaiting = mostWaiting
    this.#clock = clock
  }

  /**
   * Does the work of a request in its turn; never if its client is gone by then. If the answer is a stream, the turn lasts until
   * all of it is sent.
   * @throws HomeportError `too_many_heavy_requests`
   */
  async serve<Result>(accountId: string, exchange: Exchange, work: () => Promise<Result>): Promise<Result> {
    const tooMany = () => new HomeportError('too_many_heavy_requests', { most: this.#mostWaiting })
    if (this.#turns.waiting(accountId) >= this.#mostWaiting) throw tooMany()
    const end = await this.#turns.begin(accountId, (leave) => onceOver(exchange.request, exchange.response, leave))
    // The client is gone: nobody gets this answer.
    if (!end) throw tooMany()
    try {
      const result = await work()
      // More is read while the client takes what it has.
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
    const look = (before: number, silentLooks: number): void => {
      const unread = response.writableLength
      const silent = unread > 0 && unread === before ? silentLooks + 1 : 0
      if (silent >= MOST_SILENT_LOOKS) request.socket.destroy()
      else timer = this.#clock.after(LOOK_EVERY_MS, () => look(unread, silent))
    }
    look(0, 0)
    onceOver(request, response, () => {
      timer?.cancel()
      end()
    })
  }
}
