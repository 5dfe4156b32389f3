/**
 * The first two queue tokens of an account: one that may do everything and one that may only read. The table `accounts`
 * has them encrypted, because the management API shows them. The table `queue_tokens` has their hashes, like those of
 * the other tokens, and decides which tokens are accepted.
 */
import type { Selectable } from 'kysely'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AccountsTable, QueueTokensTable } from '../../store/schema/accounts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { lockInstallation } from './installation.js'

type AccountRow = Selectable<AccountsTable>
type QueueTokenRow = Selectable<QueueTokensTable>

type Columns = Pick<
  AccountRow,
  'account_id' | 'email' | 'created_at' | 'queue_token' | 'queue_token_hash' | 'queue_read_token_hash'
>

const columnsOf = query<{ accountId: string }, Columns>(({ db, p }) =>
  db
    .selectFrom('accounts')
    .select(['account_id', 'email', 'created_at', 'queue_token', 'queue_token_hash', 'queue_read_token_hash'])
    .where('account_id', '=', p.accountId),
)
const tokensOf = query<{ accountId: string }, Pick<QueueTokenRow, 'token_id' | 'name' | 'token_hash' | 'first_token'>>(
  ({ db, p }) =>
    db
      .selectFrom('queue_tokens')
      .select(['token_id', 'name', 'token_hash', 'first_token'])
      .where('account_id', '=', p.accountId),
)
const replaceSecret = query<{ tokenId: string; hash: string }>(({ db, p }) =>
  db
    .updateTable('queue_tokens')
    .set({ token_hash: p.hash, previous_hash: null, previous_until: null })
    .where('token_id', '=', p.tokenId),
)
/** Deletes a token. */
export const dropToken = query<{ tokenId: string }>(({ db, p }) =>
  db.deleteFrom('queue_tokens').where('token_id', '=', p.tokenId),
)
const setToken = query<{ accountId: string; hash: string; sealed: string | null }>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({ queue_token_hash: p.hash, queue_token: p.sealed })
    .where('account_id', '=', p.accountId),
)
const setReadToken = query<{ accountId: string; hash: string | null; sealed: string | null }>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({ queue_read_token_hash: p.hash, queue_read_token: p.sealed })
    .where('account_id', '=', p.accountId),
)

const NAMES = { all: 'default', read: 'read-only' } as const
const REVOKED = 'revoked '

/** Whether the first token of an account was deleted. */
export const isRevoked = ({ queue_token_hash }: Pick<AccountRow, 'queue_token_hash'>): boolean =>
  queue_token_hash.startsWith(REVOKED)

const everyColumns = query<object, Columns>(({ db }) =>
  db
    .selectFrom('accounts')
    .select(['account_id', 'email', 'created_at', 'queue_token', 'queue_token_hash', 'queue_read_token_hash'])
    .where('state', '<>', 'deleting'),
)
const everyFirst = query<object, Pick<QueueTokenRow, 'account_id' | 'token_hash' | 'first_token'>>(({ db }) =>
  db
    .selectFrom('queue_tokens')
    .select(['account_id', 'token_hash', 'first_token'])
    .where('first_token', 'is not', null),
)

/**
 * Updates the rows of the first tokens from all accounts. They differ if an older version, which has no such rows,
 * created or changed accounts. Returns how many accounts differed.
 */
export const syncAllFirstTokens = write('firstTokens.followAll', function* (_: object): Transaction<number> {
  yield* lockInstallation()
  const rows = yield* all(everyFirst, {})
  const held = new Map(rows.map((row) => [`${row.first_token} ${row.account_id}`, row.token_hash]))
  const isCurrent = (account: Columns): boolean =>
    (held.get(`all ${account.account_id}`) ?? null) === hashOf(account) &&
    (held.get(`read ${account.account_id}`) ?? null) === account.queue_read_token_hash
  const stale = (yield* all(everyColumns, {})).filter((account) => !isCurrent(account))
  for (const { account_id } of stale) yield* syncFirstTokens(account_id)
  return stale.length
})

/** Updates the rows of the first tokens from the account. Call it in each transaction that sets tokens in the account. */
export function* syncFirstTokens(accountId: string): Transaction<void> {
  const account = yield* first(columnsOf, { accountId })
  if (!account) return
  const present = yield* all(tokensOf, { accountId })
  for (const kind of ['all', 'read'] as const) {
    const hash = kind === 'all' ? hashOf(account) : account.queue_read_token_hash
    const row = present.find(({ first_token }) => first_token === kind)
    if (hash === null && row) yield* change(dropToken, { tokenId: row.token_id })
    else if (hash !== null && row && row.token_hash !== hash) {
      yield* change(replaceSecret, { tokenId: row.token_id, hash })
    } else if (hash !== null && !row) {
      const isTaken = present.some(({ name }) => name === NAMES[kind])
      const name = isTaken ? `${NAMES[kind]} of ${accountId}` : NAMES[kind]
      yield* insertAll('queue_tokens', [rowOf(account, kind, name, hash)])
    }
  }
}

/** The hash of the first token; null if it was deleted, or for a team whose first token was never shown. */
function hashOf(account: Columns): string | null {
  const isUnseen = account.queue_token === null && account.email === account.account_id
  return isUnseen || isRevoked(account) ? null : account.queue_token_hash
}

function rowOf({ account_id, created_at }: Columns, kind: 'all' | 'read', name: string, token_hash: string) {
  return {
    token_id: `${kind === 'all' ? 'tok_first_' : 'tok_read_'}${account_id}`,
    account_id,
    name,
    token_hash,
    scope: kind,
    scope_name: null,
    created_at,
    expires_at: null,
    last_used_at: null,
    previous_hash: null,
    previous_until: null,
    first_token: kind,
  }
}

/**
 * Updates the account after one of its first tokens was rotated or deleted. Does nothing for other tokens.
 * @param secret the new secret, as hash and encrypted; `undefined`: the token was deleted.
 */
export function* syncToken(
  { account_id: accountId, first_token }: Pick<QueueTokenRow, 'account_id' | 'first_token'>,
  secret: { readonly hash: string; readonly sealed: string | null } | undefined,
): Transaction<void> {
  if (first_token === 'all') {
    yield* change(setToken, { accountId, ...(secret ?? { hash: REVOKED + accountId, sealed: null }) })
  } else if (first_token === 'read')
    yield* change(setReadToken, { accountId, ...(secret ?? { hash: null, sealed: null }) })
}
