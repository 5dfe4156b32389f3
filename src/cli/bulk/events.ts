import { getBulkAction } from '../../contract/bulk/actions.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Api, parsed } from '../remote/api.js'
import type { Action } from './action.js'

/** Following an action by the events that the server sends of it. */

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5_000
/** A server that was there once is waited for: it may be starting again. */
const PATIENCE_MS = 60_000

/**
 * An action after each of its changes, the last time when it is over. When the connection is lost, or the server
 * restarts, it is asked again, for up to a minute.
 * @throws HomeportError `server_refused`; `server_unreachable` at once when it was never there.
 */
export async function* follow(api: Api, actionId: string): AsyncGenerator<Action> {
  let seenAt: number | undefined
  let pauseMs = FIRST_PAUSE_MS
  for (;;) {
    try {
      for await (const { name, data } of eventsOf(await open(api, actionId))) {
        yield parsed(getBulkAction.success.body, JSON.parse(data))
        if (name === 'end') return
        seenAt = performance.now()
        pauseMs = FIRST_PAUSE_MS
      }
    } catch (error) {
      const mayPass = seenAt !== undefined && performance.now() - seenAt < PATIENCE_MS
      if (!mayPass || !isPassing(error)) throw error
    }
    await pause(pauseMs)
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  }
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

const open = (api: Api, actionId: string): Promise<Response> =>
  api.stream(getBulkAction, { params: { actionId }, headers: { accept: 'text/event-stream' } })

/** Whether an error says no more than that the server is not there right now. */
function isPassing(error: unknown): boolean {
  // A body that breaks off is no error of the catalogue.
  if (!(error instanceof HomeportError)) return error instanceof TypeError
  if (error.code === 'server_unreachable') return true
  return error.code === 'server_refused' && isUnavailable(error.details)
}

const isUnavailable = (details: unknown): boolean =>
  typeof details === 'object' && details !== null && 'status' in details && details.status === 503

/** A server-sent event. */
interface ServerEvent {
  readonly name: string
  readonly data: string
}

/** The events of a stream as they come; comments are passed over. */
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
  const data = fields.get('data')
  return data === undefined ? undefined : { name: fields.get('event') ?? 'message', data }
}

function splitAt(line: string, separator: string): readonly [string, string] {
  const at = line.indexOf(separator)
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + separator.length)]
}
