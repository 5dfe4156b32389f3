import type { Selectable } from 'kysely'
import type { AuditAction } from '../../contract/accounts/audit.js'
import { query } from '../../store/query.js'
import type { AuditLogTable } from '../../store/schema/accounts.js'
import { all, type Transaction } from '../../store/statement.js'

type AuditRow = Selectable<AuditLogTable>

/** An entry with the current name of the object that it changed; absent if the object is gone or has no name. */
export type NamedAuditRow = AuditRow & { readonly entity_name?: string }

interface Named {
  readonly id: string
  readonly name: string
}

type Wanted = { readonly accountId: string; readonly ids: readonly string[] }

/**
 * Actions whose entity is an account or a team. The entity of other entries may be a text that a caller has chosen, such
 * as the id of somebody else's account, whose name must not be shown.
 */
const ABOUT_ACCOUNTS: readonly AuditAction[] = [
  ...(['Create Account', 'Suspend Account', 'Resume Account', 'Delete Account', 'Change Account'] as const),
  ...(['Create Team', 'Delete Team', 'Add Team Member', 'Remove Team Member'] as const),
  ...(['Reset Credentials', 'Rotate Signing Keys'] as const),
]

/** Names of objects of the account. An object that has moved to another account is not named. */
const NAMES = [
  query<Wanted, Named>(({ db, p, d }) =>
    db
      .selectFrom('databases')
      .select(['database_id as id', 'name'])
      .where('account_id', '=', p.accountId)
      .where(d.inTexts('database_id', p.ids)),
  ),
  query<Wanted, Named>(({ db, p, d }) =>
    db
      .selectFrom('api_keys')
      .select(['key_id as id', 'name'])
      .where('account_id', '=', p.accountId)
      .where(d.inTexts('key_id', p.ids)),
  ),
  query<Wanted, Named>(({ db, p, d }) =>
    db
      .selectFrom('queue_tokens')
      .select(['token_id as id', 'name'])
      .where('account_id', '=', p.accountId)
      .where(d.inTexts('token_id', p.ids)),
  ),
]

/** Names of accounts and teams, only for the ids of entries about them. */
const NAMES_OF_ACCOUNTS = [
  query<Wanted, Named>(({ db, p, d }) =>
    db.selectFrom('accounts').select(['account_id as id', 'email as name']).where(d.inTexts('account_id', p.ids)),
  ),
  // Teams come after accounts and override them: a team is also an account, but the e-mail of that account is its id.
  query<Wanted, Named>(({ db, p, d }) =>
    db.selectFrom('teams').select(['team_id as id', 'name']).where(d.inTexts('team_id', p.ids)),
  ),
]

/** Adds the current names of the objects that were changed. */
export function* withNames(accountId: string, rows: readonly AuditRow[]): Transaction<NamedAuditRow[]> {
  const isAboutAccount = ({ action }: AuditRow): boolean => ABOUT_ACCOUNTS.some((known) => known === action)
  const names = yield* namesOf(NAMES, accountId, rows)
  const accountNames = yield* namesOf(NAMES_OF_ACCOUNTS, accountId, rows.filter(isAboutAccount))
  return rows.map((row) => {
    const name = (isAboutAccount(row) ? accountNames : names).get(row.entity)
    return name === undefined ? row : { ...row, entity_name: name }
  })
}

function* namesOf(
  queries: readonly (typeof NAMES)[number][],
  accountId: string,
  rows: readonly AuditRow[],
): Transaction<Map<string, string>> {
  const ids = [...new Set(rows.map(({ entity }) => entity))]
  const names = new Map<string, string>()
  if (ids.length === 0) return names
  for (const named of queries) for (const { id, name } of yield* all(named, { accountId, ids })) names.set(id, name)
  return names
}
