import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from './caller.js'
import { arrivalOf } from './caller.js'
import type { Call } from './route.js'

/** Checks the credentials of a request. */
interface CredentialCheck {
  refusal(request: FastifyRequest): HomeportError | undefined | Promise<HomeportError | undefined>
}

/** The validated input of a request. */
interface Input {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
}

/** A call over HTTP: the validated input, and the rest of the request on demand. */
export class ReceivedCall implements Call {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly #request: FastifyRequest
  readonly #response: FastifyReply
  readonly #credentials: CredentialCheck

  constructor(
    { params, query, body }: Input,
    request: FastifyRequest,
    response: FastifyReply,
    credentials: CredentialCheck,
  ) {
    this.params = params
    this.query = query
    this.body = body
    this.#request = request
    this.#response = response
    this.#credentials = credentials
  }

  get caller(): Caller {
    const { caller } = arrivalOf(this.#request.raw)
    if (!caller) throw new Error('this endpoint does not authenticate its callers')
    return caller
  }

  get ip(): string {
    return arrivalOf(this.#request.raw).ip
  }

  get requestId(): string {
    return arrivalOf(this.#request.raw).requestId
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
    return (await this.#credentials.refusal(this.#request)) === undefined
  }
}

function goneSignal(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  onResponseOver(request, response, () => {
    if (!response.writableFinished) controller.abort()
  })
  return controller.signal
}

/**
 * Calls back once a response is over: it was sent completely, or its connection is lost. The `close` event of the response
 * is not enough: a response that is queued behind earlier ones has no connection yet, so it emits none when the connection
 * is lost.
 */
export function onResponseOver({ socket }: IncomingMessage, response: ServerResponse, callback: () => void): void {
  const over = (): void => {
    socket.off('close', over)
    response.off('close', over)
    callback()
  }
  // Every pipelined request of the connection adds a listener.
  socket.setMaxListeners(0)
  socket.on('close', over)
  response.on('close', over)
}
