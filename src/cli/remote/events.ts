import { HomeportError } from '../../contract/errors/errors.js'

/** Reads streams of server-sent events, across restarts of the server. */

const FIRST_BACKOFF_MS = 250
const MAX_BACKOFF_MS = 5_000
/** How long reconnecting is retried: the server may be restarting. */
export const RECONNECT_MS = 60_000

/** A server-sent event. */
export interface ServerEvent {
  readonly name: string
  readonly data: string
  /** For `Last-Event-ID`. */
  readonly id?: string
}

/**
 * Yields the events of a stream until the caller stops. When the connection is lost or the server restarts, tries to
 * reconnect for up to a minute.
 * @param open connects; it gets the id of the last event, if there was one.
 * @throws HomeportError `server_refused`; `server_unreachable` at once when the first connection fails.
 */
export async function* followEvents(open: (lastId?: string) => Promise<Response>): AsyncGenerator<ServerEvent> {
  let lostAt: number | undefined
  let lastId: string | undefined
  let backoffMs = FIRST_BACKOFF_MS
  for (;;) {
    let isConnected = false
    try {
      const response = await open(lastId)
      isConnected = true
      for await (const { id = lastId, ...event } of eventsOf(response)) {
        lastId = id
        backoffMs = FIRST_BACKOFF_MS
        yield event
      }
    } catch (error) {
      if (isConnected) lostAt = performance.now()
      const mayReconnect = lostAt !== undefined && performance.now() - lostAt < RECONNECT_MS
      if (!mayReconnect || !isTemporary(error)) throw error
    }
    if (isConnected) lostAt = performance.now()
    await sleep(backoffMs)
    backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS)
  }
}

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

/** Whether an error means that the server is temporarily unavailable. */
export function isTemporary(error: unknown): boolean {
  // `fetch` reports an interrupted body as a TypeError.
  if (!(error instanceof HomeportError)) return error instanceof TypeError
  if (error.code === 'server_unreachable') return true
  return error.code === 'server_refused' && isUnavailable(error.details)
}

const isUnavailable = (details: unknown): boolean =>
  typeof details === 'object' && details !== null && 'status' in details && details.status === 503

/** Parses the events of a stream; skips comments. */
async function* eventsOf({ body }: Response): AsyncGenerator<ServerEvent> {
  let text = ''
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = (text + part).split('\n\n')
    text = blocks.pop() ?? ''
    yield* blocks.map(eventOf).filter((event) => event !== undefined)
  }
}

function eventOf(block: string): ServerEvent | undefined {
  const fields = new Map(block.split('\n').map((line) => splitAt(line, ': ')))
  const [data, id] = [fields.get('data'), fields.get('id')]
  return data === undefined
    ? undefined
    : { name: fields.get('event') ?? 'message', data, ...(id !== undefined && { id }) }
}

function splitAt(line: string, separator: string): readonly [string, string] {
  const at = line.indexOf(separator)
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + separator.length)]
}
