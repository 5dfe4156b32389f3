import { rm } from 'node:fs/promises'
import { type Clock, newId, randomSecret, sha256Hex } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Store } from '../store/index.js'
import { auditRow } from './audit.js'
import {
  type Credentials,
  credentialsPath,
  newCredentials,
  newQueueToken,
  queueUserIdOf,
  writeCredentials,
} from './credentials.js'
import { bindDataDir } from './installation.js'
import * as accounts from './transactions/accounts.js'
import * as accountsReset from './transactions/accounts-reset.js'

/** Input of the creation of the first account. */
export interface FirstAccount {
  readonly store: Store
  readonly dataDir: string
  readonly clock: Clock
  readonly email: string
}

/**
 * Creates the first account. Its credentials are written before the account is committed. A crash in between
 * leaves a file without an account, and the next start creates the account from that file. The other order could
 * leave an account with unknown credentials. If several nodes start at the same time, one creates the account; the
 * others delete the file that they have written.
 * @param found the content of the credentials file, if there is one.
 * @returns the content of the file afterwards.
 */
export async function createFirstAccount(
  deps: FirstAccount,
  found: Credentials | undefined,
): Promise<Credentials | undefined> {
  const credentials = found ?? newCredentials(deps.email)
  if (!found) await writeCredentials(deps.dataDir, credentials)
  const isMade = await deps.store.run(accounts.createFirst, rowsOf(credentials, deps))
  if (isMade || found) return credentials
  await rm(credentialsPath(deps.dataDir), { force: true })
  return undefined
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
      operator: 1 as const,
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

/** Input of a reset. The caller holds the lock of the data directory, and no server runs on it. */
export interface ResetOptions {
  readonly store: Store
  readonly dataDir: string
  readonly clock: Clock
  /** Deletes all API keys of the account, not only the one named `default`. */
  readonly endsOtherKeys: boolean
}

/** The name of the key in `credentials.json`. */
const KEY_NAME = 'default'

/**
 * Gives the first account a new API key and a new queue token; the old ones are invalid. The `UserID` in the token stays,
 * because webhook URLs contain it. The signing keys stay, because receivers know them.
 *
 * The file is written before the commit, as at the first start. After a crash in between, the file has credentials that
 * the store does not know; repeat the reset.
 * @throws HomeportError `cli_failed` when there is no account yet.
 */
export async function resetCredentials({ store, dataDir, clock, endsOtherKeys }: ResetOptions): Promise<Credentials> {
  await bindDataDir(store, dataDir, clock.now())
  const account = (await store.run(accounts.load, {})).accounts.find(({ operator }) => operator === 1)
  if (!account) {
    const problem = 'There is no account yet. Start the server once: it creates one, with its credentials.'
    throw new HomeportError('cli_failed', { problem })
  }
  const credentials = freshCredentials(account)
  await writeCredentials(dataDir, credentials)
  await store.run(accountsReset.resetCredentials, {
    ...resetRowsOf(account, credentials, clock.now()),
    endsOtherKeys,
  })
  return credentials
}

function freshCredentials(account: accounts.AccountRow): Credentials {
  return {
    email: account.email,
    apiKey: randomSecret(32),
    queueToken: newQueueToken(account.queue_user_id),
    currentSigningKey: account.signing_current,
    nextSigningKey: account.signing_next,
  }
}

function resetRowsOf(account: accounts.AccountRow, { apiKey, queueToken }: Credentials, now: number) {
  const { account_id, email, type: accountType } = account
  const operator = { accountId: account_id, email, accountType, source: 'SYSTEM', access: 'write', ip: '' } as const
  return {
    key: {
      key_id: newId('key_', now),
      account_id,
      name: KEY_NAME,
      key_hash: sha256Hex(apiKey),
      read_only: 0 as const,
      created_at: now,
    },
    queueTokenHash: sha256Hex(queueToken),
    audit: auditRow(operator, { action: 'Reset Credentials', entity: account_id, details: {} }, now),
  }
}
