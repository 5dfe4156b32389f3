import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from './caller.js'
import { arrivalOf } from './caller.js'
import type { Call } from './route.js'

/** Says why a caller is refused. */
interface Door {
  refusal(request: FastifyRequest): HomeportError | undefined | Promise<HomeportError | undefined>
}

/** What a request says, parsed and checked. */
interface Said {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
}

/** A call over HTTP: what was parsed and checked, and the rest of the request when it is asked for. */
export class ReceivedCall implements Call {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly #request: FastifyRequest
  readonly #response: FastifyReply
  readonly #door: Door

  constructor({ params, query, body }: Said, request: FastifyRequest, response: FastifyReply, door: Door) {
    this.params = params
    this.query = query
    this.body = body
    this.#request = request
    this.#response = response
    this.#door = door
  }

  get caller(): Caller {
    const { caller } = arrivalOf(this.#request.raw)
    if (!caller) throw new Error('this endpoint does not authenticate its callers')
    return caller
  }

  get ip(): string {
    return arrivalOf(this.#request.raw).ip
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers
  }

  get target(): string {
    return arrivalOf(this.#request.raw).target
  }

  get signal(): AbortSignal {
    return goneSignal(this.#request.raw, this.#response.raw)
  }

  async isStillAllowed(): Promise<boolean> {
    return (await this.#door.refusal(this.#request)) === undefined
  }
}

function goneSignal(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  onceOver(request, response, () => {
    if (!response.writableFinished) controller.abort()
  })
  return controller.signal
}

/**
 * Calls back once a response is over: it has been sent completely, or its connection is lost. The response alone does
 * not tell: one that is queued behind earlier responses has no connection yet, so it emits no `close` when that is lost.
 */
export function onceOver({ socket }: IncomingMessage, response: ServerResponse, callback: () => void): void {
  const over = (): void => {
    socket.off('close', over)
    response.off('close', over)
    callback()
  }
  // One listener per pipelined request of the connection.
  socket.setMaxListeners(0)
  socket.on('close', over)
  response.on('close', over)
}
