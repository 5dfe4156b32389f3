/** API keys. Names are unique within an account; only hashes are stored. */
import type { Insertable } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ApiKeysTable } from '../../store/schema/accounts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { type ApiKeyRow, lockAccount, type NewAuditRow, recordAudit } from './accounts.js'
import { roleOf, type TeamRole } from './teams.js'

const keysOf = query<{ accountId: string }, ApiKeyRow>(({ db, p }) =>
  db.selectFrom('api_keys').selectAll().where('account_id', '=', p.accountId).orderBy('created_at').orderBy('key_id'),
)

/** The keys of an account or team, oldest first. */
export const list = read('apiKeys.list', function* (args: { accountId: string }): Transaction<ApiKeyRow[]> {
  return yield* all(keysOf, args)
})

/** Arguments of `create`. */
export interface CreateKeyArgs {
  readonly key: Insertable<ApiKeysTable>
  /** E-mail of the caller in lower case; decides the caller's permissions in a team. */
  readonly emailKey: string
  /** How many keys an account may have. */
  readonly limit: number
  readonly audit: NewAuditRow
}

/** Why a key for a member is refused. */
export type HolderRefusal =
  | { readonly kind: 'not_found' }
  | { readonly kind: 'no_such_member' }
  | { readonly kind: 'forbidden'; readonly role: TeamRole }

/** The outcome of `create`. */
export type CreateKeyOutcome =
  | { readonly kind: 'created' }
  | { readonly kind: 'limit_reached' }
  | { readonly kind: 'name_taken' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'no_such_member' }
  | { readonly kind: 'forbidden'; readonly role: TeamRole }

/** Creates a key. In a team, members create keys for themselves; owner and admins also for others except the owner. */
export const create = write('apiKeys.create', function* (args: CreateKeyArgs): Transaction<CreateKeyOutcome> {
  const { key } = args
  if (!(yield* first(lockAccount, { accountId: key.account_id }))) return { kind: 'not_found' }
  const refusal = key.holder ? yield* holderRefusal(key.account_id, key.holder, args.emailKey) : undefined
  if (refusal) return refusal
  const present = yield* all(keysOf, { accountId: key.account_id })
  if (present.some(({ name }) => name === key.name)) return { kind: 'name_taken' }
  if (present.length >= args.limit) return { kind: 'limit_reached' }
  yield* insertAll('api_keys', [key])
  yield* recordAudit(args.audit)
  return { kind: 'created' }
})

/** Why a caller may not make or rotate a key of the member `holder`; `undefined` if the caller may. */
export function* holderRefusal(
  teamId: string,
  holder: string,
  emailKey: string,
): Transaction<HolderRefusal | undefined> {
  const caller = yield* first(roleOf, { teamId, emailKey })
  if (!caller) return { kind: 'not_found' }
  if (holder === emailKey) return undefined
  if (caller.role !== 'owner' && caller.role !== 'admin') return { kind: 'forbidden', role: caller.role }
  const other = yield* first(roleOf, { teamId, emailKey: holder })
  if (!other) return { kind: 'no_such_member' }
  return other.role === 'owner' ? { kind: 'forbidden', role: caller.role } : undefined
}

const dropKey = query<{ keyId: string }>(({ db, p }) => db.deleteFrom('api_keys').where('key_id', '=', p.keyId))

/** The outcome of `remove`. */
export type DeleteKeyOutcome =
  | { readonly kind: 'deleted' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'last_key' }
  | { readonly kind: 'forbidden'; readonly role: TeamRole }

/**
 * Deletes a key of the account. The last key that may write and does not expire cannot be deleted, because nobody could
 * then create another key. In a team, only the owner and admins may delete keys of others, and only the owner may delete
 * keys of the owner. A team's last key may be deleted, because the owner can always create new ones.
 */
export const remove = write(
  'apiKeys.remove',
  function* (args: {
    accountId: string
    keyId: string
    emailKey: string
    audit: NewAuditRow
  }): Transaction<DeleteKeyOutcome> {
    yield* first(lockAccount, { accountId: args.accountId })
    const keys = yield* all(keysOf, { accountId: args.accountId })
    const key = keys.find((one) => one.key_id === args.keyId)
    if (!key) return { kind: 'not_found' }
    const refusal = yield* removalRefusal(key, keys, args.emailKey)
    if (refusal) return refusal
    yield* change(dropKey, { keyId: args.keyId })
    yield* recordAudit(args.audit)
    return { kind: 'deleted' }
  },
)

function* removalRefusal(
  key: ApiKeyRow,
  keys: readonly ApiKeyRow[],
  emailKey: string,
): Transaction<DeleteKeyOutcome | undefined> {
  if (key.holder === null) {
    const lasts = (one: ApiKeyRow): boolean => one.read_only === 0 && one.expires_at === null
    const others = keys.filter((one) => one.key_id !== key.key_id && lasts(one))
    return lasts(key) && others.length === 0 ? { kind: 'last_key' } : undefined
  }
  if (key.holder === emailKey) return undefined
  const caller = yield* first(roleOf, { teamId: key.account_id, emailKey })
  if (!caller) return { kind: 'not_found' }
  if (caller.role === 'owner') return undefined
  const holder = yield* first(roleOf, { teamId: key.account_id, emailKey: key.holder })
  const isAllowed = caller.role === 'admin' && holder?.role !== 'owner'
  return isAllowed ? undefined : { kind: 'forbidden', role: caller.role }
}
