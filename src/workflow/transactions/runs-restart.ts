import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { countDaily, type DailyQuota } from '../../queue/transactions/daily-messages.js'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { first, only, type Transaction } from '../../store/statement.js'
import { deliverElements, insertElements } from './runs-append.js'
import { insertRun } from './runs-locked.js'
import { type PausedWorkflow, pauseBegun } from './runs-pause.js'
import type { NewElement, NewRun } from './runs-rows.js'

/** A run that begins with a part of the list of another run. */
export interface RestartRunArgs {
  readonly accountId: string
  readonly run: NewRun
  /** The list, the payload first. */
  readonly elements: readonly NewElement[]
  /** The `messageId` of each element that is delivered. */
  readonly delivered: readonly string[]
  readonly audit: NewAuditRow
  /** Set for an account with a daily limit of messages: the run counts as one message. */
  readonly quota?: DailyQuota | undefined
  readonly at: number
  /** Paused workflows that the run belongs to. Absent: none. */
  readonly paused?: readonly PausedWorkflow[] | undefined
}

/** The run with the new id. `made: false`: the id was taken, and nothing was changed. */
export interface RestartedRun {
  readonly made: boolean
  readonly createdAt: number
  readonly offers: readonly PendingRow[]
}

const createdAtOf = query<{ accountId: string; runId: string }, { created_at: number }>(({ db, p }) =>
  db.selectFrom('runs').select('created_at').where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
)

/** Creates a run with its list, the messages of delivered elements and an audit entry. The original is not changed. */
export const restartRun = write('runs.restart', function* (args: RestartRunArgs): Transaction<RestartedRun> {
  const { accountId, run, at } = args
  const row = { ...run, account_id: accountId, created_at: at, parent_seq: null, parent: null }
  const made = yield* first(insertRun, row)
  if (!made) {
    const { created_at: createdAt } = yield* only(createdAtOf, { accountId, runId: run.run_id })
    return { made: false, createdAt, offers: [] }
  }
  if (args.quota) yield* countDaily(args.quota, 1, at)
  yield* pauseBegun([{ seq: made.seq, url: run.url }], args.paused)
  const list = args.elements.map((element) => ({ accountId, runSeq: made.seq, element }))
  yield* insertElements(list, at)
  const delivered = new Set(args.delivered)
  const offers = yield* deliverElements(
    list.filter(({ element }) => delivered.has(element.messageId)),
    at,
  )
  yield* recordAudit(args.audit)
  return { made: true, createdAt: at, offers }
})
