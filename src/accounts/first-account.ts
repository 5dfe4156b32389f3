import { type Clock, newId, sha256Hex } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import { type Credentials, credentialsPath, writeCredentials } from './credentials-file.js'
import { newCredentials, queueUserIdOf } from './secrets.js'
import * as accounts from './transactions/accounts.js'

/** What a first account is made of. */
export interface FirstAccount {
  readonly store: Store
  readonly dataDir: string
  readonly clock: Clock
  readonly email: string
}

/**
 * Makes the first account. Its credentials are on disk before the account is committed: a crash in between leaves a
 * file without an account, and the next start makes the account from that file. The other order could leave an
 * account whose credentials nobody has.
 * @param found what the file of this data directory holds already, if there is one.
 */
export async function makeFirstAccount(parts: FirstAccount, found: Credentials | undefined): Promise<Credentials> {
  const credentials = found ?? newCredentials(parts.email)
  if (!found) await writeCredentials(parts.dataDir, credentials)
  await parts.store.run(accounts.create, rowsOf(credentials, parts))
  return credentials
}

function rowsOf(credentials: Credentials, { clock, dataDir }: FirstAccount) {
  const queueUserId = queueUserIdOf(credentials.queueToken)
  if (queueUserId === undefined) {
    const reason = 'queueToken is not the base64 of a JSON object with UserID and Password'
    throw new HomeportError('credentials_unusable', { path: credentialsPath(dataDir), reason })
  }
  const now = clock.now()
  const accountId = newId('acc_', now)
  return {
    account: {
      account_id: accountId,
      email: credentials.email,
      type: 'paid' as const,
      queue_user_id: queueUserId,
      queue_token_hash: sha256Hex(credentials.queueToken),
      signing_current: credentials.currentSigningKey,
      signing_next: credentials.nextSigningKey,
      created_at: now,
    },
    key: {
      key_id: newId('key_', now),
      account_id: accountId,
      name: 'default',
      key_hash: sha256Hex(credentials.apiKey),
      read_only: 0 as const,
      created_at: now,
    },
  }
}
