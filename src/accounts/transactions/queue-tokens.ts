/** Named queue tokens, rotation of tokens and keys, and when they were used last. Only hashes are stored. */
import { type Selectable, sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { QueueTokensTable } from '../../store/schema/accounts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { type ApiKeyRow, lockAccount, type NewAuditRow, recordAudit } from './accounts.js'
import { holderRefusal } from './api-keys.js'
import { dropToken, syncToken } from './first-tokens.js'
import { roleOf, type TeamRole } from './teams.js'

/** A queue token as it is stored: its hash, never the token. */
export type QueueTokenRow = Selectable<QueueTokensTable>

const tokensOf = query<{ accountId: string }, QueueTokenRow>(({ db, p }) =>
  db
    .selectFrom('queue_tokens')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .orderBy('created_at')
    .orderBy('token_id'),
)
const allTokens = query<object, QueueTokenRow>(({ db }) => db.selectFrom('queue_tokens').selectAll())
const teamOf = query<{ accountId: string }, { team_id: string }>(({ db, p }) =>
  db.selectFrom('teams').select('team_id').where('team_id', '=', p.accountId),
)

/** The tokens of an account or team, oldest first. */
export const list = read('queueTokens.list', function* (args: { accountId: string }): Transaction<QueueTokenRow[]> {
  return yield* all(tokensOf, args)
})

/** The tokens of all accounts. */
export const load = read('queueTokens.load', function* (_: object): Transaction<QueueTokenRow[]> {
  return yield* all(allTokens, {})
})

/** The account or team whose tokens are changed, and by whom. */
export interface TokenOwner {
  readonly accountId: string
  /** E-mail of the caller in lower case; decides the caller's permissions in a team. */
  readonly emailKey: string
}

/** Why a change of a token is refused. */
export type TokenRefusal =
  | { readonly kind: 'no_account' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'forbidden'; readonly role: TeamRole }

/**
 * Locks the account. In a team, refuses callers other than the owner and admins: a token has no holder, so removing a member
 * would not end it.
 */
export function* lockOwner({ accountId, emailKey }: TokenOwner): Transaction<TokenRefusal | undefined> {
  if (!(yield* first(lockAccount, { accountId }))) return { kind: 'no_account' }
  if (!(yield* first(teamOf, { accountId }))) return undefined
  const member = yield* first(roleOf, { teamId: accountId, emailKey })
  if (!member) return { kind: 'no_account' }
  return member.role === 'owner' || member.role === 'admin' ? undefined : { kind: 'forbidden', role: member.role }
}

/** The outcome of `create`. */
export type CreateTokenOutcome =
  | TokenRefusal
  | { readonly kind: 'created' }
  | { readonly kind: 'limit_reached' }
  | { readonly kind: 'name_taken' }

/** Creates a token. */
export const create = write(
  'queueTokens.create',
  function* (
    args: TokenOwner & { token: QueueTokenRow; limit: number; audit: NewAuditRow },
  ): Transaction<CreateTokenOutcome> {
    const refusal = yield* lockOwner(args)
    if (refusal) return refusal
    const present = yield* all(tokensOf, args)
    if (present.some(({ name }) => name === args.token.name)) return { kind: 'name_taken' }
    if (present.filter(({ first_token }) => first_token === null).length >= args.limit) return { kind: 'limit_reached' }
    yield* insertAll('queue_tokens', [args.token])
    yield* recordAudit(args.audit)
    return { kind: 'created' }
  },
)

/** Deletes a token. */
export const remove = write(
  'queueTokens.remove',
  function* (
    args: TokenOwner & { tokenId: string; audit: NewAuditRow },
  ): Transaction<TokenRefusal | { readonly kind: 'deleted'; readonly wasFirst: boolean }> {
    const refusal = yield* lockOwner(args)
    if (refusal) return refusal
    const present = yield* all(tokensOf, args)
    const row = present.find((one) => one.token_id === args.tokenId)
    if (!row) return { kind: 'not_found' }
    yield* change(dropToken, args)
    yield* syncToken(row, undefined)
    yield* recordAudit(args.audit)
    return { kind: 'deleted', wasFirst: row.first_token !== null }
  },
)

/** The values that a rotation writes. Times are Unix milliseconds. */
export interface Rotation {
  readonly hash: string
  /** Until when the old secret, and the sessions of the console that began with it, are accepted; 0: not at all. */
  readonly previousUntil: number
  /** The new expiry of a key or token that expires; `undefined` keeps the old one. */
  readonly expiresAt: number | undefined
}

interface NewSecret {
  readonly hash: string
  readonly previousHash: string
  readonly previousUntil: number
  readonly expiresAt: number | null
}

const newSecretOf = (row: { expires_at: number | null }, oldHash: string, rotation: Rotation): NewSecret => ({
  hash: rotation.hash,
  previousHash: oldHash,
  previousUntil: rotation.previousUntil,
  expiresAt: rotation.expiresAt ?? row.expires_at,
})

const setToken = query<NewSecret & { tokenId: string }>(({ db, p }) =>
  db
    .updateTable('queue_tokens')
    .set({
      token_hash: p.hash,
      previous_hash: p.previousHash,
      previous_until: p.previousUntil,
      expires_at: p.expiresAt,
    })
    .where('token_id', '=', p.tokenId),
)

/** The outcome of a rotation. `never_expires`: a new expiry was requested for a key or token that never expires. */
export type RotateOutcome<Row> =
  | TokenRefusal
  | { readonly kind: 'never_expires' }
  | { readonly kind: 'rotated'; readonly row: Row }

/** Gives a token a new secret. */
export const rotate = write(
  'queueTokens.rotate',
  function* (
    args: TokenOwner & { tokenId: string; rotation: Rotation; sealed: string | null; audit: NewAuditRow },
  ): Transaction<RotateOutcome<QueueTokenRow>> {
    const refusal = yield* lockOwner(args)
    if (refusal) return refusal
    const row = (yield* all(tokensOf, args)).find((one) => one.token_id === args.tokenId)
    if (!row) return { kind: 'not_found' }
    if (row.expires_at === null && args.rotation.expiresAt !== undefined) return { kind: 'never_expires' }
    const secret = newSecretOf(row, row.token_hash, args.rotation)
    yield* change(setToken, { ...secret, tokenId: row.token_id })
    yield* syncToken(row, { hash: secret.hash, sealed: args.sealed })
    yield* recordAudit(args.audit)
    const { hash: token_hash, previousUntil: previous_until, expiresAt: expires_at } = secret
    return { kind: 'rotated', row: { ...row, token_hash, previous_until, expires_at } }
  },
)

const keyOf = query<{ accountId: string; keyId: string }, ApiKeyRow>(({ db, p }) =>
  db.selectFrom('api_keys').selectAll().where('account_id', '=', p.accountId).where('key_id', '=', p.keyId),
)
const setKey = query<NewSecret & { keyId: string }>(({ db, p }) =>
  db
    .updateTable('api_keys')
    .set({ key_hash: p.hash, previous_hash: p.previousHash, previous_until: p.previousUntil, expires_at: p.expiresAt })
    .where('key_id', '=', p.keyId),
)

/** The outcome of `rotateKey`, with the hash of the previous secret. */
export type RotateKeyOutcome =
  | Exclude<RotateOutcome<ApiKeyRow>, { kind: 'rotated' }>
  | { readonly kind: 'rotated'; readonly row: ApiKeyRow; readonly oldHash: string }

/**
 * Gives an API key a new secret. The person who rotates a key learns its secret, so in a team the same rules hold as for
 * creating a key: only the owner and admins may rotate keys of others, and only the owner may rotate keys of the owner.
 */
export const rotateKey = write(
  'apiKeys.rotate',
  function* (
    args: TokenOwner & { keyId: string; rotation: Rotation; audit: NewAuditRow },
  ): Transaction<RotateKeyOutcome> {
    if (!(yield* first(lockAccount, args))) return { kind: 'no_account' }
    const row = yield* first(keyOf, args)
    if (!row) return { kind: 'not_found' }
    const refusal = row.holder === null ? undefined : yield* holderRefusal(row.account_id, row.holder, args.emailKey)
    if (refusal) return refusal.kind === 'forbidden' ? refusal : { kind: 'not_found' }
    if (row.expires_at === null && args.rotation.expiresAt !== undefined) return { kind: 'never_expires' }
    const secret = newSecretOf(row, row.key_hash, args.rotation)
    yield* change(setKey, { ...secret, keyId: row.key_id })
    yield* recordAudit(args.audit)
    const { hash: key_hash, previousUntil: previous_until, expiresAt: expires_at } = secret
    return { kind: 'rotated', row: { ...row, key_hash, previous_until, expires_at }, oldHash: row.key_hash }
  },
)

/** A key or token and when it was used last, Unix milliseconds. */
export interface LastUse {
  readonly id: string
  readonly at: number
}

const setKeyUse = query<LastUse>(({ db, p }) =>
  db
    .updateTable('api_keys')
    .set({ last_used_at: p.at })
    .where('key_id', '=', p.id)
    .where((eb) => eb(eb.fn.coalesce('last_used_at', sql.lit(0)), '<', p.at)),
)
const setTokenUse = query<LastUse>(({ db, p }) =>
  db
    .updateTable('queue_tokens')
    .set({ last_used_at: p.at })
    .where('token_id', '=', p.id)
    .where((eb) => eb(eb.fn.coalesce('last_used_at', sql.lit(0)), '<', p.at)),
)

const inOrder = (uses: readonly LastUse[]): LastUse[] => [...uses].sort((one, other) => (one.id < other.id ? -1 : 1))

/** Stores when keys and tokens were used last. A later use that another node has stored stays. Deleted ones stay deleted. */
export const recordUses = write(
  'queueTokens.noteUses',
  function* (args: { keys: readonly LastUse[]; tokens: readonly LastUse[] }): Transaction<void> {
    // In one order, because two nodes may note the uses of the same keys at the same time.
    for (const use of inOrder(args.keys)) yield* change(setKeyUse, use)
    for (const use of inOrder(args.tokens)) yield* change(setTokenUse, use)
  },
)
