/** Replaces lost or leaked credentials of an account. */
import type { Insertable } from 'kysely'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ApiKeysTable } from '../../store/schema/accounts.js'
import { change, insertAll, type Transaction } from '../../store/statement.js'
import { type NewAuditRow, recordAudit } from './accounts.js'
import { syncFirstTokens } from './first-tokens.js'

const setQueueToken = query<{ accountId: string; hash: string }>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({ queue_token_hash: p.hash, queue_token: null, queue_read_token: null, queue_read_token_hash: null })
    .where('account_id', '=', p.accountId),
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

const dropTokens = query<{ accountId: string }>(({ db, p }) =>
  db.deleteFrom('queue_tokens').where('account_id', '=', p.accountId),
)

/** The new credentials, as hashes. */
export interface ResetCredentialsArgs {
  /** Replaces the key of the same name. */
  readonly key: Insertable<ApiKeysTable>
  readonly queueTokenHash: string
  /** Whether all other keys of the account and its named queue tokens are deleted too. */
  readonly endsOtherKeys: boolean
  readonly audit: NewAuditRow
}

/** Replaces the key and queue token of an account. */
export const resetCredentials = write(
  'accounts.resetCredentials',
  function* ({ key, queueTokenHash, endsOtherKeys, audit }: ResetCredentialsArgs): Transaction<void> {
    const accountId = key.account_id
    if (endsOtherKeys) {
      yield* change(dropOwnKeys, { accountId })
      yield* change(dropTokens, { accountId })
    } else yield* change(dropOwnKey, { accountId, name: key.name })
    yield* insertAll('api_keys', [key])
    yield* change(setQueueToken, { accountId, hash: queueTokenHash })
    yield* syncFirstTokens(accountId)
    yield* recordAudit(audit)
  },
)
