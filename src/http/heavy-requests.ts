import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { HomeportError } from '../contract/errors/errors.js'
import { onceOver } from './received-call.js'
import { isReply } from './route.js'

/** SQLite has one reader: one request more keeps it busy, and further ones only make others wait. */
const MOST_AT_ONCE = 2
const MOST_WAITING = 1_000

/** A request over HTTP with its answer. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

interface AccountRequests {
  active: number
  /** What begins the next ones, in the order of their arrival. */
  readonly waiting: Set<() => void>
}

/**
 * Serves two heavy requests of each account at a time, so that the requests of others wait behind two at most, however many
 * one account sends. The rest waits for its turn.
 */
export class HeavyRequests {
  readonly #accounts = new Map<string, AccountRequests>()
  readonly #mostWaiting: number

  constructor(mostWaiting = MOST_WAITING) {
    this.#mostWaiting = mostWaiting
  }

  /**
   * Does the work of a request in its turn; never if its client is gone by then. If the answer is a stream, the turn lasts until
   * all of it is sent.
   * @throws HomeportError `too_many_heavy_requests`
   */
  async serve<Result>(accountId: string, exchange: Exchange, work: () => Promise<Result>): Promise<Result> {
    const account = this.#accounts.get(accountId) ?? { active: 0, waiting: new Set() }
    this.#accounts.set(accountId, account)
    if (account.active < MOST_AT_ONCE) account.active++
    else await this.#turn(account, exchange)
    const end = (): void => this.#end(accountId, account)
    try {
      const result = await work()
      // More is read while the client takes what it has.
      if (isReply(result) && result.value instanceof Readable) onceEnded(exchange, end)
      else end()
      return result
    } catch (error) {
      end()
      throw error
    }
  }

  /** The next one takes the place of the one that ends. */
  #end(accountId: string, account: AccountRequests): void {
    const [next] = account.waiting
    if (next) next()
    else account.active--
    if (account.active === 0) this.#accounts.delete(accountId)
  }

  async #turn({ waiting }: AccountRequests, { request, response }: Exchange): Promise<void> {
    const refusal = new HomeportError('too_many_heavy_requests', { most: this.#mostWaiting })
    if (waiting.size >= this.#mostWaiting) throw refusal
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        waiting.delete(begin)
        resolve()
      }
      waiting.add(begin)
      // Nobody gets this answer.
      onceOver(request, response, () => {
        if (waiting.delete(begin)) reject(refusal)
      })
    })
  }
}

function onceEnded({ request, response }: Exchange, callback: () => void): void {
  if (request.socket.destroyed || response.destroyed || response.writableFinished) callback()
  else onceOver(request, response, callback)
}
