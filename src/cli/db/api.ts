import { credentialsPath, readCredentials } from '../../accounts/index.js'
import type { Config } from '../../config/index.js'
import { HomeportError } from '../../contract/errors.js'
import { localApiUrl } from '../local-api-url.js'

/** The management API of the running server, called as the first account. */
export interface ManagementApi {
  /** Calls an operation and answers its JSON. Rejects with `cli_failed` and the server's own words. */
  call(method: string, path: string, body?: unknown): Promise<unknown>
  /** The same with a body or an answer that is a stream of bytes. */
  stream(method: string, path: string, body?: ReadableStream): Promise<Response>
}

/**
 * Reads the credentials of the data directory.
 * @throws HomeportError `cli_failed` when there are none.
 */
export async function managementApi(config: Config): Promise<ManagementApi> {
  const credentials = await readCredentials(config.dataDir)
  if (credentials === undefined) {
    const path = credentialsPath(config.dataDir)
    throw failed(`There are no credentials at ${path}. Start the server once (npm start), or name its --data-dir.`)
  }
  const login = Buffer.from(`${credentials.email}:${credentials.apiKey}`).toString('base64')
  const stream: ManagementApi['stream'] = (method, path, body) =>
    ask(`${localApiUrl(config)}${path}`, {
      method,
      headers: { authorization: `Basic ${login}` },
      ...(body === undefined ? {} : { body, duplex: 'half' }),
    })
  return {
    stream,
    call: async (method, path, body) => {
      const sent = body === undefined ? undefined : new Blob([JSON.stringify(body)]).stream()
      return (await stream(method, path, sent)).json()
    },
  }
}

async function ask(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init).catch((cause: unknown) => {
    throw failed(`The server does not answer at ${new URL(url).origin}. Start it first: npm start.`, cause)
  })
  if (response.ok) return response
  const body: unknown = await response.json().catch(() => undefined)
  const said = typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : undefined
  throw failed(said ?? `The server answered ${response.status}.`)
}

/** An error of a command, in one sentence. */
export function failed(problem: string, cause?: unknown): HomeportError {
  return new HomeportError('cli_failed', { problem }, { cause })
}
