/** Deletes what an account has in the queue, in workflows and in bulk actions, when the account itself is deleted. */
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { FlowKeysTable } from '../../store/schema/queues.js'
import { all, change, type Transaction } from '../../store/statement.js'
import { removeRunsWithAll } from '../../workflow/transactions/runs-retention.js'

type OfAccount = { accountId: string }
type Page = OfAccount & { limit: number }

/** Deletions in order: first the settings that create new messages. */
const SETTINGS = [
  query<OfAccount>(({ db, p }) => db.deleteFrom('schedules').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('bulk_actions').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('bulk_selectors').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('paused_workflows').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('queue_turns').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('queues').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('url_groups').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('message_keys').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('rule_keys').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('run_rule_keys').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('published_days').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('run_waits').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('notified_events').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('activity').where('account_id', '=', p.accountId)),
  query<OfAccount>(({ db, p }) => db.deleteFrom('cancelled_deliveries').where('account_id', '=', p.accountId)),
]

/** A flow-control key. */
export type FlowKeyName = Pick<FlowKeysTable, 'account_id' | 'flow_key'>

const dropFlowKeys = query<OfAccount, FlowKeyName>(({ db, p }) =>
  db.deleteFrom('flow_keys').where('account_id', '=', p.accountId).returning(['account_id', 'flow_key']),
)

/**
 * Deletes schedules, queues, URL groups, flow-control keys, deduplication keys, keys of rules, waits, bulk actions, saved
 * selectors, paused workflows, activity and notified events.
 * @returns the flow-control keys.
 */
export const settings = write('accountPurge.settings', function* (args: OfAccount): Transaction<FlowKeyName[]> {
  for (const drop of SETTINGS) yield* change(drop, args)
  return yield* all(dropFlowKeys, args)
})

const someMessages = query<Page, { seq: number }>(({ db, p }) =>
  db.selectFrom('messages').select('seq').where('account_id', '=', p.accountId).limit(p.limit),
)
const dropAttempts = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('message_attempts').where(d.inNumbers('message_seq', p.seqs)),
)
const dropMessages = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('messages').where(d.inNumbers('seq', p.seqs)),
)

/** Deletes a batch of messages in any state. Returns their numbers: the dispatcher has to drop them. */
export const messages = write(
  'accountPurge.messages',
  function* (args: Page): Transaction<number[]> {
    const seqs = (yield* all(someMessages, args)).map(({ seq }) => seq)
    if (seqs.length === 0) return seqs
    yield* change(dropAttempts, { seqs })
    yield* change(dropMessages, { seqs })
    return seqs
  },
  { turn: 'background' },
)

const someRuns = query<Page, { seq: number }>(({ db, p }) =>
  db.selectFrom('runs').select('seq').where('account_id', '=', p.accountId).limit(p.limit),
)

/** Deletes a batch of runs in any state with all their data. Returns their numbers. */
export const runs = write(
  'accountPurge.runs',
  function* (args: Page): Transaction<number[]> {
    const seqs = (yield* all(someRuns, args)).map(({ seq }) => seq)
    if (seqs.length > 0) yield* removeRunsWithAll(seqs)
    return seqs
  },
  { turn: 'background' },
)
