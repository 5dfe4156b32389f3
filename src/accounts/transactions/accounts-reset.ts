/** New credentials for an account whose old ones are lost or known to others. */
import type { Insertable } from 'kysely'
import { change, insertAll, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ApiKeysTable } from '../../store/schema/accounts.js'
import { type NewAuditRow, recordAudit } from './accounts.js'

const setQueueToken = query<{ accountId: string; hash: string }>(({ db, p }) =>
  db.updateTable('accounts').set({ queue_token_hash: p.hash }).where('account_id', '=', p.accountId),
)
const dropOwnKey = query<{ accountId: string; name: string }>(({ db, p }) =>
  db
    .deleteFrom('api_keys')
    .where('account_id', '=', p.accountId)
    .where('holder', 'is', null)
    .where('name', '=', p.name),
)
const dropOwnKeys = query<{ accountId: string }>(({ db, p }) =>
  db.deleteFrom('api_keys').where('account_id', '=', p.accountId).where('holder', 'is', null),
)

/** What takes the place of the old credentials. Only hashes are kept. */
export interface ResetCredentialsArgs {
  /** Takes the place of the key of the same name. */
  readonly key: Insertable<ApiKeysTable>
  readonly queueTokenHash: string
  /** Whether all other keys of the account end too. */
  readonly endsOtherKeys: boolean
  readonly audit: NewAuditRow
}

/** Ends the old key and token of an account and puts new ones in their place. */
export const resetCredentials = write(
  'accounts.resetCredentials',
  function* ({ key, queueTokenHash, endsOtherKeys, audit }: ResetCredentialsArgs): Transaction<void> {
    const accountId = key.account_id
    if (endsOtherKeys) yield* change(dropOwnKeys, { accountId })
    else yield* change(dropOwnKey, { accountId, name: key.name })
    yield* insertAll('api_keys', [key])
    yield* change(setQueueToken, { accountId, hash: queueTokenHash })
    yield* recordAudit(audit)
  },
)
