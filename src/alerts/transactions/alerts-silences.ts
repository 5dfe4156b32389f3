/** Silences of accounts, which keep alerts from being sent for a while. */
import type { Insertable, Selectable } from 'kysely'
import { lockAccount, type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AlertSilencesTable } from '../../store/schema/alerts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'

/** A silence as it is stored. */
export type SilenceRow = Selectable<AlertSilencesTable>

/** Silences of an account that have not ended. */
export const activeSilences = query<{ accountId: string; now: number }, SilenceRow>(({ db, p }) =>
  db
    .selectFrom('alert_silences')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('until', '>', p.now)
    .orderBy('until')
    .orderBy('silence_id'),
)
const dropEnded = query<{ accountId: string; now: number }>(({ db, p }) =>
  db.deleteFrom('alert_silences').where('account_id', '=', p.accountId).where('until', '<=', p.now),
)
const dropOne = query<{ accountId: string; silenceId: string }>(({ db, p }) =>
  db.deleteFrom('alert_silences').where('account_id', '=', p.accountId).where('silence_id', '=', p.silenceId),
)

/** Silences of an account that have not ended, ordered by their end. */
export const list = read('alertSilences.list', function* (args: { accountId: string; now: number }): Transaction<
  SilenceRow[]
> {
  return yield* all(activeSilences, args)
})

/** Inserts a silence and deletes those that have ended. `limit_reached`: the account has too many active silences. */
export const create = write(
  'alertSilences.create',
  function* (args: {
    silence: Insertable<AlertSilencesTable>
    limit: number
    now: number
    audit: NewAuditRow
  }): Transaction<'created' | 'limit_reached'> {
    const { now } = args
    const accountId = args.silence.account_id
    yield* first(lockAccount, { accountId })
    yield* change(dropEnded, { accountId, now })
    if ((yield* all(activeSilences, { accountId, now })).length >= args.limit) return 'limit_reached'
    yield* insertAll('alert_silences', [args.silence])
    yield* recordAudit(args.audit)
    return 'created'
  },
)

/** Ends a silence. Returns whether there was one. */
export const remove = write(
  'alertSilences.remove',
  function* (args: { accountId: string; silenceId: string; audit: NewAuditRow }): Transaction<boolean> {
    const { accountId, silenceId } = args
    if ((yield* change(dropOne, { accountId, silenceId })) === 0) return false
    yield* recordAudit(args.audit)
    return true
  },
)
