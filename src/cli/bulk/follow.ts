import { type BULK_KINDS, getBulkAction, startBulkAction } from '../../contract/bulk/actions.js'
import { BULK_KIND_WORDS } from '../../contract/words/bulk.js'
import { failedWith } from '../errors.js'
import { FAILED, NOT_FOUND } from '../exit-codes.js'
import { type Api, parsed } from '../remote/api.js'
import { followEvents } from '../remote/events.js'
import type { Session } from '../remote/remote.js'
import { type Progress, progressOf } from '../terminal/progress.js'
import { type Action, summaryOf } from './action.js'

/** Follows bulk actions by their server-sent events. */

/** Follows an action to its end and prints the result. */
export async function followToEnd(session: Session, actionId: string): Promise<void> {
  const action = await watch(session, actionId)
  session.show(action, () => summaryOf(action))
  endAs(session, action)
}

/** Ends the command with an exit code by the outcome: an item may have failed, or a given id may be unknown. */
export function endAs(session: Session, { failed, outcomes, selector }: Action): void {
  const isById = Object.keys(selector).some((name) => name.endsWith('Ids'))
  if (failed > 0) session.endWith(FAILED)
  else if (isById && (outcomes.notFound ?? 0) > 0) session.endWith(NOT_FOUND)
}

/** Follows an action to its end, and prints a line of JSON for each change with `--json`, otherwise the result. */
export async function watchToEnd(session: Session, actionId: string): Promise<void> {
  if (!session.isJson) return followToEnd(session, actionId)
  const print = (action: Action): void => session.io.out(`${JSON.stringify(action)}\n`)
  endAs(session, await watch(session, actionId, print))
}

/**
 * Follows an action with a progress bar until it ends or is paused. Returns its last state.
 * @param changed is called with each state, including the last one.
 */
export async function watch(
  { api, io }: Session,
  actionId: string,
  changed: (action: Action) => void = () => undefined,
): Promise<Action> {
  let progress: Progress | undefined
  try {
    for await (const action of follow(api, actionId)) {
      changed(action)
      progress ??= progressOf(io, BULK_KIND_WORDS[action.kind].items)
      progress.at(action.done, action.matched)
      if (action.state !== 'running') return action
    }
  } finally {
    progress?.end()
  }
  throw failedWith(`The events of ${actionId} ended before the action did.`)
}

/**
 * Starts a bulk action and follows it to its end. The action fixes its set first. If this command worked page by page, the
 * set would grow meanwhile: an item that is sent again and fails again would be selected again.
 */
export async function runBulkAction(
  session: Session,
  body: { readonly kind: (typeof BULK_KINDS)[number]; readonly selector: Record<string, unknown> },
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { actionId } = await session.api.call(startBulkAction, { body, headers })
  await followToEnd(session, actionId)
}

/**
 * Yields an action after each change, until it has ended. Reconnects as `followEvents` does.
 * @throws HomeportError `server_refused`; `server_unreachable` at once when the first connection fails.
 */
export async function* follow(api: Api, actionId: string): AsyncGenerator<Action> {
  for await (const { name, data } of followEvents(() => open(api, actionId))) {
    yield parsed(getBulkAction.success.body, JSON.parse(data))
    if (name === 'end') return
  }
}

const open = (api: Api, actionId: string): Promise<Response> =>
  api.stream(getBulkAction, { params: { actionId }, headers: { accept: 'text/event-stream' } })
