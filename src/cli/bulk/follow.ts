import { type BULK_KINDS, getBulkAction, startBulkAction } from '../../contract/bulk/actions.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { FAILED } from '../exit-codes.js'
import { type Api, parsed } from '../remote/api.js'
import type { Session } from '../remote/remote.js'
import { progressOf } from '../terminal/progress.js'
import { type Action, summaryOf } from './action.js'

/** Follows bulk actions by their server-sent events. */

/** Follows an action to its end and prints the result. */
export async function followToEnd(session: Session, actionId: string): Promise<void> {
  const action = await watch(session, actionId)
  session.show(action, () => summaryOf(action))
  if (action.failed > 0) session.endWith(FAILED)
}

/** Follows an action with a progress bar until it ends or is paused. Returns its last state. */
export async function watch({ api, io }: Session, actionId: string): Promise<Action> {
  const progress = progressOf(io, 'items')
  try {
    for await (const action of follow(api, actionId)) {
      progress.at(action.done, action.matched)
      if (action.state !== 'running') return action
    }
  } finally {
    progress.end()
  }
  throw new HomeportError('cli_failed', { problem: `The events of ${actionId} ended before the action did.` })
}

/**
 * Starts a bulk action and follows it to its end. The action fixes its set first. Page by page instead, the set would
 * grow during the work: an item that is sent again and fails again would be selected again.
 */
export async function runBulkAction(
  session: Session,
  body: { readonly kind: (typeof BULK_KINDS)[number]; readonly selector: Record<string, unknown> },
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { actionId } = await session.api.call(startBulkAction, { body, headers })
  await followToEnd(session, actionId)
}

const FIRST_BACKOFF_MS = 250
const MOST_BACKOFF_MS = 5_000
/** How long reconnecting is retried: the server may be restarting. */
const RECONNECT_MS = 60_000

/**
 * Yields an action after each change, until it has ended. Reconnects for up to a minute when the connection is lost or
 * the server restarts.
 * @throws HomeportError `server_refused`; `server_unreachable` at once when the first connection fails.
 */
export async function* follow(api: Api, actionId: string): AsyncGenerator<Action> {
  let seenAt: number | undefined
  let backoffMs = FIRST_BACKOFF_MS
  for (;;) {
    try {
      for await (const { name, data } of eventsOf(await open(api, actionId))) {
        yield parsed(getBulkAction.success.body, JSON.parse(data))
        if (name === 'end') return
        seenAt = performance.now()
        backoffMs = FIRST_BACKOFF_MS
      }
    } catch (error) {
      const mayReconnect = seenAt !== undefined && performance.now() - seenAt < RECONNECT_MS
      if (!mayReconnect || !isTemporary(error)) throw error
    }
    await sleep(backoffMs)
    backoffMs = Math.min(backoffMs * 2, MOST_BACKOFF_MS)
  }
}

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

const open = (api: Api, actionId: string): Promise<Response> =>
  api.stream(getBulkAction, { params: { actionId }, headers: { accept: 'text/event-stream' } })

/** Whether an error only says that the server is not available now. */
function isTemporary(error: unknown): boolean {
  // `fetch` reports an interrupted body as a TypeError.
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
  const data = fields.get('data')
  return data === undefined ? undefined : { name: fields.get('event') ?? 'message', data }
}

function splitAt(line: string, separator: string): readonly [string, string] {
  const at = line.indexOf(separator)
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + separator.length)]
}
