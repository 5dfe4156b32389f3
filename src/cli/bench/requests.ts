import { Agent, request } from 'undici'
import { isObject, tryParseJson } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { unreachable } from '../remote/api.js'
import type { Access } from '../remote/connection.js'

/** One request of a load. */
export interface LoadRequest {
  readonly method: 'POST' | 'DELETE'
  /** Path and query. */
  readonly path: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends requests to one service over connections that stay open, as an SDK in a busy program does. */
export class Requests {
  readonly #agent: Agent
  readonly #access: Access

  /** @param connections the most connections at a time; further requests wait. */
  constructor(access: Access, connections: number) {
    this.#access = access
    this.#agent = new Agent({ connections })
  }

  /**
   * Sends a request.
   * @throws HomeportError `server_refused` for any response but 2xx, `server_unreachable`.
   */
  async send({ method, path, body, headers }: LoadRequest): Promise<void> {
    const { url, authorization } = this.#access
    const all = { 'content-type': 'application/json', ...headers, authorization }
    // Without `reset: false`, undici closes the connection after a DELETE with a body.
    const options = { dispatcher: this.#agent, method, headers: all, body, reset: false }
    const { statusCode, body: answer } = await request(url + path, options).catch((error: unknown) => {
      throw unreachable(url, error)
    })
    const text = await answer.text()
    if (statusCode < 200 || statusCode > 299) throw refusal(statusCode, text)
  }

  /** Closes all connections. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

function refusal(status: number, text: string): HomeportError {
  const body = tryParseJson(text)
  const said = isObject(body) && typeof body.error === 'string' ? body.error : `The server responded with ${status}.`
  return new HomeportError('server_refused', { said, status })
}
