import { type Queue, toPending } from '../../queue/index.js'
import { toPendingRow } from '../../queue/transactions/messages.js'
import { outboundOf } from '../protocol/outbound.js'
import { markOf } from '../protocol/settings.js'
import { messageFor } from '../transactions/runs-append.js'
import type { RunOfDelivery } from '../transactions/runs-read.js'
import type { NewRun } from '../transactions/runs-rows.js'
import type { SubmitArgs } from '../transactions/runs-submissions.js'
import { type Plain, plainOf } from '../transactions/runs-submit-one.js'
import type { RecentLists, RequestAhead, Upcoming } from './recent-lists.js'
import { deliversList } from './run-state.js'

/** Collaborators and settings of `requestAhead`. */
export interface RequestsAheadDeps {
  readonly lists: Pick<RecentLists, 'withNext' | 'ofStart'>
  readonly queue: Pick<Queue, 'signAhead'>
  /** The SDK fetches a larger list itself; default `INLINE_LIMIT_BYTES`. */
  readonly inlineLimitBytes?: number | undefined
}

/** Placeholder for `seq`, which the store assigns later and the request does not contain. */
const UNNUMBERED = 0
const NO_BODY = new Uint8Array()

/**
 * Builds and signs the request that delivers the only element of a submission, while the store commits the element.
 * `undefined` if the delivery is due later, or depends on more than a cached list.
 *
 * It changes nothing. After the commit the intake gives the request to `RecentLists`, which keeps it only if the element got
 * the place that the request was built for. From then on the request is part of the list and is dropped with it.
 */
export function requestAhead(deps: RequestsAheadDeps, args: SubmitArgs): RequestAhead | undefined {
  const plain = plainOf(args)
  if (plain?.element.kind !== 'step' || plain.element.dueAt > args.at) return undefined
  const upcoming = upcomingOf(deps, args, plain)
  if (!upcoming) return undefined
  const { run, runSeq, position, list } = upcoming
  const { accountId, at } = args
  const { element, delivery } = plain
  const row = toPendingRow(messageFor({ accountId, runSeq: run.seq, element }, delivery, at), UNNUMBERED)
  const message = toPending(row)
  if (!deliversList(markOf(message.config).role)) return undefined
  const outbound = outboundOf(message, { run, list, body: NO_BODY }, deps.inlineLimitBytes)
  return { messageId: element.messageId, runSeq, position, outbound: deps.queue.signAhead(message, outbound) }
}

function upcomingOf({ lists }: RequestsAheadDeps, args: SubmitArgs, plain: Plain): Upcoming | undefined {
  const { submission, element } = plain
  const step = { message_id: element.messageId, body: element.body }
  if (submission.kind === 'append') return lists.withNext(element.deliveryOf, step)
  const { run } = submission
  return run.contact === 'known' ? lists.ofStart(activeRun(run, UNNUMBERED, args.accountId, args.at), step) : undefined
}

/** A run that has just started. */
export function activeRun({ run_id, url }: NewRun, seq: number, accountId: string, now: number): RunOfDelivery {
  return { seq, run_id, account_id: accountId, url, state: 'RUN_STARTED', created_at: now }
}
