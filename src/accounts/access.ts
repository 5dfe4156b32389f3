import type { Caller, Standing, TokenScope } from '../http/index.js'
import type * as accountsTransactions from './transactions/accounts.js'
import type { QueueTokenRow } from './transactions/queue-tokens.js'
import type * as teams from './transactions/teams.js'

type AccountRow = accountsTransactions.AccountRow
type ApiKeyRow = accountsTransactions.ApiKeyRow
type MemberRow = teams.MemberRow

/** The rows that decide who may act for which account. */
export interface StoredAccess {
  readonly accounts: readonly AccountRow[]
  readonly keys: readonly ApiKeyRow[]
  readonly members: readonly MemberRow[]
  readonly tokens: readonly QueueTokenRow[]
}

/** An account with its daily message limit; `undefined`: none. */
export type KnownAccount = AccountRow & { readonly dailyMessages: number | undefined }

/** An API key whose holder may act for its account. */
export interface Key {
  readonly account: KnownAccount
  readonly row: ApiKeyRow
  /** The member who holds a team key. */
  readonly holder: MemberRow | undefined
}

/** One secret of a queue token. */
export interface Token {
  readonly id: string
  readonly account: KnownAccount
  readonly source: string
  /** Only named tokens have one; absent: everything that `access` allows. */
  readonly scope: TokenScope | undefined
  readonly access: Caller['access']
  /** From when the secret is refused, Unix milliseconds. */
  readonly until: number
}

/**
 * Who may act for which account, as of one read of the store. Conditions that depend
 * on the time, such as expiry, come later.
 */
export interface Access {
  readonly accounts: ReadonlyMap<string, KnownAccount>
  readonly accountsByUser: ReadonlyMap<string, KnownAccount>
  readonly operatorId: string | undefined
  /** The account of the owner of each team. */
  readonly ownerOf: ReadonlyMap<string, AccountRow>
  /** Only of accounts and teams that are not active. A team has the standing of its owner's account. */
  readonly standings: ReadonlyMap<string, Standing>
  readonly heldIds: ReadonlySet<string>
  /** By `memberKey`. */
  readonly members: ReadonlyMap<string, MemberRow>
  readonly keysById: ReadonlyMap<string, Key>
  readonly keysByHash: ReadonlyMap<string, Key>
  /** Keys by the hash of their secret before the last rotation. */
  readonly keysByOldHash: ReadonlyMap<string, Key>
  /** By the hash of each secret. */
  readonly tokensByHash: ReadonlyMap<string, Token>
}

/** The key for comparing e-mails, which ignores case. */
export const emailKeyOf = (email: string): string => email.toLowerCase()

/** The key of a membership. */
export const memberKey = (teamId: string, emailKey: string): string => `${teamId} ${emailKey}`

/**
 * Indexes the stored rows.
 * @param freeDailyMessages the daily message limit of free accounts; `undefined`: none.
 */
export function readAccess(stored: StoredAccess, freeDailyMessages: number | undefined): Access {
  const { accounts, members } = stored
  const ownerOf = ownersOf(stored)
  const known = accounts.map((row) => ({
    ...row,
    dailyMessages: dailyMessagesOf(row, ownerOf.get(row.account_id), freeDailyMessages),
  }))
  const byId = new Map(known.map((account) => [account.account_id, account]))
  const standings = standingsOf(accounts, ownerOf)
  const holders = new Map(members.map((member) => [memberKey(member.team_id, member.email_key), member]))
  const usable = new Map([...byId].filter(([accountId]) => standings.get(accountId) !== 'gone'))
  const keys = stored.keys.flatMap((row) => keyOf(row, usable.get(row.account_id), holders) ?? [])
  return {
    accounts: byId,
    accountsByUser: new Map(known.map((account) => [account.queue_user_id, account])),
    operatorId: accounts.find(({ operator }) => operator === 1)?.account_id,
    ownerOf,
    standings,
    heldIds: new Set(standings.keys()),
    members: holders,
    keysById: new Map(keys.map((key) => [key.row.key_id, key])),
    keysByHash: new Map(keys.map((key) => [key.row.key_hash, key])),
    keysByOldHash: new Map(
      keys.flatMap((key) => (key.row.previous_hash === null ? [] : [[key.row.previous_hash, key]])),
    ),
    tokensByHash: new Map(stored.tokens.flatMap((row) => tokensOf(row, usable.get(row.account_id)))),
  }
}

function ownersOf({ accounts, members }: StoredAccess): Map<string, AccountRow> {
  const byEmail = new Map(accounts.map((account) => [emailKeyOf(account.email), account]))
  const owners = new Map<string, AccountRow>()
  for (const { team_id, email_key, role } of members) {
    const owner = role === 'owner' ? byEmail.get(email_key) : undefined
    if (owner) owners.set(team_id, owner)
  }
  return owners
}

function dailyMessagesOf(row: AccountRow, owner: AccountRow | undefined, ofFree: number | undefined) {
  return row.daily_messages ?? owner?.daily_messages ?? (row.type === 'free' ? ofFree : undefined)
}

function standingsOf(accounts: readonly AccountRow[], ownerOf: Access['ownerOf']): Map<string, Standing> {
  const standings = new Map<string, Standing>()
  for (const { account_id, state } of accounts) {
    const states = [state, ownerOf.get(account_id)?.state]
    if (states.includes('deleting')) standings.set(account_id, 'gone')
    else if (states.includes('suspended')) standings.set(account_id, 'suspended')
  }
  return standings
}

/** An API key with its account and holder; `undefined` for the key of a former member. */
function keyOf(row: ApiKeyRow, account: KnownAccount | undefined, members: Access['members']): Key | undefined {
  const holder = row.holder === null ? undefined : members.get(memberKey(row.account_id, row.holder))
  return account && (row.holder === null || holder) ? { account, row, holder } : undefined
}

/** The secrets of a token by their hash: the current one, and the one before the last rotation. */
function tokensOf(row: QueueTokenRow, account: KnownAccount | undefined): [hash: string, token: Token][] {
  if (!account) return []
  const until = row.expires_at ?? Number.POSITIVE_INFINITY
  const access = row.scope === 'read' ? 'read' : 'write'
  const source = row.first_token === 'all' ? 'QUEUE_TOKEN' : `QUEUE_TOKEN - ${row.name}`
  const token: Token = { id: row.token_id, account, source, scope: scopeOf(row), access, until }
  const { token_hash, previous_hash, previous_until } = row
  if (previous_hash === null) return [[token_hash, token]]
  const previous = { ...token, until: Math.min(until, previous_until ?? 0) }
  return [
    [token_hash, token],
    [previous_hash, previous],
  ]
}

function scopeOf({ scope: kind, scope_name }: QueueTokenRow): TokenScope | undefined {
  if (kind === 'all') return undefined
  // A missing name becomes empty and matches nothing, because no queue or key has an empty name.
  return kind === 'publish' || kind === 'read' ? { kind } : { kind, name: scope_name ?? '' }
}
