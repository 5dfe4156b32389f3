/** Changes that accounts have made to their rules. */
import type { Selectable } from 'kysely'
import { lockAccount, type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AlertRulesTable } from '../../store/schema/alerts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'

/** The change of a rule as it is stored. */
export type RuleRow = Selectable<AlertRulesTable>

const changedRules = query<{ accountId: string }, RuleRow>(({ db, p }) =>
  db.selectFrom('alert_rules').selectAll().where('account_id', '=', p.accountId),
)
const everyChange = query<object, RuleRow>(({ db }) => db.selectFrom('alert_rules').selectAll())
const dropRule = query<{ accountId: string; kind: string }>(({ db, p }) =>
  db.deleteFrom('alert_rules').where('account_id', '=', p.accountId).where('kind', '=', p.kind),
)

/** The changed rules of an account. */
export const list = read('alertRules.list', function* (args: { accountId: string }): Transaction<RuleRow[]> {
  return yield* all(changedRules, args)
})

/** The changed rules of all accounts. */
export const listAll = read('alertRules.listAll', function* (_: object): Transaction<RuleRow[]> {
  return yield* all(everyChange, {})
})

/** Whether a rule of an account is enabled. */
export function* isEnabled(accountId: string, kind: string): Transaction<boolean> {
  const rows = yield* all(changedRules, { accountId })
  return rows.find((row) => row.kind === kind)?.enabled !== 0
}

/** Changes the given fields of a rule. Returns the new row. */
export const update = write(
  'alertRules.update',
  function* (args: {
    accountId: string
    kind: string
    fields: Partial<Pick<RuleRow, 'enabled' | 'threshold'>>
    audit: NewAuditRow
  }): Transaction<RuleRow> {
    const { accountId, kind } = args
    yield* first(lockAccount, { accountId })
    const before = (yield* all(changedRules, { accountId })).find((row) => row.kind === kind)
    const row: RuleRow = { account_id: accountId, kind, enabled: 1, threshold: null, ...before, ...args.fields }
    yield* change(dropRule, { accountId, kind })
    yield* insertAll('alert_rules', [row])
    yield* recordAudit(args.audit)
    return row
  },
)
