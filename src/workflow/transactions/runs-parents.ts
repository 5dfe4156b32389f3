import { sql } from 'kysely'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import { type Appending, appendElements } from './runs-append.js'
import type { ChildEnd, ParentLink } from './runs-rows.js'

/** A run that has just ended, with its link to the run that invoked it. */
export interface EndedChild {
  readonly parent_seq: number | null
  /** JSON of `ParentLink`. */
  readonly parent: string | null
}

const startedAmong = query<{ seqs: readonly number[] }, { seq: number; account_id: string }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'account_id'])
      .where(d.inNumbers('seq', p.seqs))
      .where('state', '=', sql.lit('RUN_STARTED'))
      .orderBy('seq', 'desc'),
  ),
)

/**
 * Notifies the runs that invoked `children` of their end: appends the awaited step to the list of each parent that is
 * still active.
 * @returns the new messages, for `queue.offer` after the commit.
 */
export function* notifyParents(children: readonly EndedChild[], end: ChildEnd, at: number): Transaction<PendingRow[]> {
  const waiting = children.filter((child) => child.parent_seq !== null && child.parent !== null)
  if (waiting.length === 0) return []
  const parents = yield* all(startedAmong, { seqs: waiting.map((child) => child.parent_seq ?? 0) })
  const accounts = new Map(parents.map((parent) => [parent.seq, parent.account_id]))
  const steps = waiting.flatMap((child): Appending[] => {
    const accountId = accounts.get(child.parent_seq ?? 0)
    return accountId === undefined ? [] : [invokeStep(accountId, child, end, at)]
  })
  return yield* appendElements(steps, at)
}

function invokeStep(accountId: string, child: EndedChild, end: ChildEnd, at: number): Appending {
  // Written by this module when it accepted the invocation.
  const link = JSON.parse(child.parent ?? '') as ParentLink
  const body = Buffer.from(JSON.stringify({ ...link.step, out: JSON.stringify(end) }))
  const element = { kind: 'step' as const, messageId: link.messageId, body, meta: null, dueAt: at }
  return { accountId, runSeq: child.parent_seq ?? 0, element }
}
