import { createHash, timingSafeEqual } from 'node:crypto'
import { type Clock, sha256Hex } from '../base/index.js'
import type { Authenticator, Caller, Standing, TokenScope } from '../http/index.js'
import type * as accountsTransactions from './transactions/accounts.js'
import type { LastUse, QueueTokenRow } from './transactions/queue-tokens.js'
import type * as teams from './transactions/teams.js'

type AccountRow = accountsTransactions.AccountRow
type ApiKeyRow = accountsTransactions.ApiKeyRow
type MemberRow = teams.MemberRow

/** The two keys with which deliveries are signed and verified. */
export interface SigningKeys {
  readonly current: string
  readonly next: string
}

/** An account as other modules see it. */
export interface Account {
  readonly accountId: string
  readonly email: string
  readonly type: 'free' | 'paid'
  /** The `UserID` of the queue token; part of webhook URLs. */
  readonly queueUserId: string
}

/** An account with its limit of messages a day; `undefined`: none. */
type KnownAccount = AccountRow & { readonly dailyMessages: number | undefined }

interface Key {
  readonly account: KnownAccount
  readonly row: ApiKeyRow
  /** The member who holds a team key. */
  readonly holder: MemberRow | undefined
  readonly use: Use
}

/** When a key or token was used last, Unix milliseconds; 0: not since the start. One object for its whole life. */
interface Use {
  at: number
}

interface Token {
  readonly account: KnownAccount
  readonly source: string
  /** Of named tokens only; absent: everything that `access` allows. */
  readonly scope: TokenScope | undefined
  readonly access: Caller['access']
  /** From when it is refused, Unix milliseconds. */
  readonly until: number
  readonly use: Use
}

const FOREVER = Number.POSITIVE_INFINITY

/** The key for comparing e-mails, which ignores case. */
export const emailKeyOf = (email: string): string => email.toLowerCase()

/**
 * All accounts and keys, in memory. Secrets are looked up by their SHA-256: the time of a lookup can only reveal something
 * about hashes, and nobody can choose an input whose hash approaches that of an unknown secret.
 */
export class AccountDirectory implements Authenticator {
  readonly #accounts = new Map<string, KnownAccount>()
  readonly #freeDailyMessages: number | undefined
  readonly #clock: Clock
  #operatorId: string | undefined
  /** Only of accounts and teams that are not active. */
  readonly #standings = new Map<string, Standing>()
  #heldIds: ReadonlySet<string> = new Set()
  /** The account of the owner of each team. */
  readonly #ownerOf = new Map<string, AccountRow>()
  /** By team and e-mail key. */
  #members: ReadonlyMap<string, MemberRow> = new Map()
  readonly #keysByHash = new Map<string, Key>()
  /** Keys by the hash of their secret before the last rotation. */
  readonly #keysByOldHash = new Map<string, Key>()
  readonly #uses = new Map<string, Use>()
  readonly #keysById = new Map<string, Key>()
  readonly #tokensByHash = new Map<string, Token>()
  readonly #accountsByUser = new Map<string, AccountRow>()

  /** @param freeDailyMessages the limit of messages a day of free accounts; `undefined`: none. */
  constructor(clock: Clock, freeDailyMessages?: number) {
    this.#clock = clock
    this.#freeDailyMessages = freeDailyMessages
  }

  /** The id of the operator's account. */
  get firstId(): string | undefined {
    return this.#operatorId
  }

  /** Whether callers may act for an account. A team is as its owner's account is. */
  standingOf(accountId: string): Standing {
    return this.#standings.get(accountId) ?? (this.#accounts.has(accountId) ? 'active' : 'gone')
  }

  /** The accounts and teams that callers may not act for, because they are suspended or being deleted. */
  get heldIds(): ReadonlySet<string> {
    return this.#heldIds
  }

  /** Most databases of an account or team, where the operator has set a limit. */
  databaseLimitOf(accountId: string): number | undefined {
    const account = this.#accounts.get(accountId)
    const owner = this.#ownerOf.get(accountId)
    return account?.database_limit ?? owner?.database_limit ?? undefined
  }

  /** Most messages a day of an account or team; `undefined`: no limit. */
  dailyMessagesOf(accountId: string): number | undefined {
    return this.#accounts.get(accountId)?.dailyMessages
  }

  /** Replaces everything with what the store has. */
  load({ accounts, keys, members, tokens }: StoredAccess): void {
    const byKey = [this.#keysByHash, this.#keysByOldHash, this.#keysById]
    for (const index of [this.#accounts, ...byKey, this.#tokensByHash, this.#accountsByUser]) index.clear()
    const used = new Map(this.#uses)
    this.#uses.clear()
    const useOf = (id: string): Use => {
      const use = used.get(id) ?? { at: 0 }
      this.#uses.set(id, use)
      return use
    }
    this.#loadOwners(accounts, members)
    for (const row of accounts) {
      const account = { ...row, dailyMessages: this.#dailyMessages(row) }
      this.#accounts.set(account.account_id, account)
      this.#accountsByUser.set(account.queue_user_id, account)
    }
    this.#operatorId = accounts.find(({ operator }) => operator === 1)?.account_id
    this.#loadStandings(accounts)
    this.#members = new Map(members.map((member) => [`${member.team_id} ${member.email_key}`, member]))
    for (const row of keys) {
      const account = this.#accounts.get(row.account_id)
      const holder = this.#members.get(`${row.account_id} ${row.holder}`)
      // The key of a former member is ignored.
      if (!account || (row.holder !== null && !holder) || this.standingOf(row.account_id) === 'gone') continue
      const key = { account, row, holder, use: useOf(row.key_id) }
      this.#keysByHash.set(row.key_hash, key)
      if (row.previous_hash !== null) this.#keysByOldHash.set(row.previous_hash, key)
      this.#keysById.set(row.key_id, key)
    }
    for (const row of tokens) this.#addToken(row, useOf(row.token_id))
  }

  #loadOwners(accounts: readonly AccountRow[], members: readonly MemberRow[]): void {
    this.#ownerOf.clear()
    const byEmail = new Map(accounts.map((account) => [emailKeyOf(account.email), account]))
    for (const { team_id, email_key, role } of members) {
      const owner = role === 'owner' ? byEmail.get(email_key) : undefined
      if (owner) this.#ownerOf.set(team_id, owner)
    }
  }

  #dailyMessages({ account_id, type, daily_messages }: AccountRow): number | undefined {
    const set = daily_messages ?? this.#ownerOf.get(account_id)?.daily_messages
    return set ?? (type === 'free' ? this.#freeDailyMessages : undefined)
  }

  #loadStandings(accounts: readonly AccountRow[]): void {
    this.#standings.clear()
    for (const { account_id, state } of accounts) {
      const states = [state, this.#ownerOf.get(account_id)?.state]
      if (states.includes('deleting')) this.#standings.set(account_id, 'gone')
      else if (states.includes('suspended')) this.#standings.set(account_id, 'suspended')
    }
    this.#heldIds = new Set(this.#standings.keys())
  }

  #addToken(row: QueueTokenRow, use: Use): void {
    const account = this.#accounts.get(row.account_id)
    if (!account || this.standingOf(row.account_id) === 'gone') return
    const until = row.expires_at ?? FOREVER
    const access: Caller['access'] = row.scope === 'read' ? 'read' : 'write'
    const source = row.first_token === 'all' ? 'QUEUE_TOKEN' : `QUEUE_TOKEN - ${row.name}`
    const token = { account, source, scope: scopeOf(row), access, until, use }
    this.#tokensByHash.set(row.token_hash, token)
    if (row.previous_hash === null) return
    this.#tokensByHash.set(row.previous_hash, { ...token, until: Math.min(until, row.previous_until ?? 0) })
  }

  /** When a key or token was used last since the start, Unix milliseconds. */
  lastUseOf(id: string): number | undefined {
    return this.#uses.get(id)?.at || undefined
  }

  /** The keys and tokens that were used after a moment, Unix milliseconds. */
  usedSince(moment: number): { keys: LastUse[]; tokens: LastUse[] } {
    const found = { keys: [] as LastUse[], tokens: [] as LastUse[] }
    for (const [id, { at }] of this.#uses) {
      if (at > moment) (this.#keysById.has(id) ? found.keys : found.tokens).push({ id, at })
    }
    return found
  }

  basic(header: string | undefined, ip: string): Caller | undefined {
    const { email, password } = parseBasic(header)
    const key = this.#keyOf(email, password)
    return key && callerOfKey(this.#noted(key), ip)
  }

  /** The id of an API key, if it belongs to this e-mail. */
  keyIdOf(email: string, apiKey: string): string | undefined {
    return this.#keyOf(email, apiKey)?.row.key_id
  }

  /** Whether the user of a caller may still write for its account. The owner of an account always may. */
  isStillMember({ accountId, email, role }: Caller): boolean {
    if (role === undefined) return true
    const member = this.#members.get(`${accountId} ${emailKeyOf(email)}`)
    return member !== undefined && member.role !== 'finance'
  }

  /** The caller of the API key with this id, while the key exists and its holder is a member. */
  callerOfKeyId(keyId: string, ip: string): Caller | undefined {
    const key = this.#keysById.get(keyId)
    return key && this.#isValid(key) ? callerOfKey(this.#noted(key), ip) : undefined
  }

  /**
   * The caller of the API key with this id while it is accepted with the secret of this hash, and its holder is a member.
   * @param hash `null`: unknown, so it must be the only one that the key has had.
   */
  callerOfSecret(keyId: string, hash: string | null, ip: string): Caller | undefined {
    const key = this.#keysById.get(keyId)
    const isAccepted = hash === null ? key?.row.previous_hash === null : this.#keyOfHash(hash) === key
    return key && isAccepted ? this.callerOfKeyId(keyId, ip) : undefined
  }

  #isValid({ row }: Key): boolean {
    return row.expires_at === null || row.expires_at > this.#clock.now()
  }

  #noted<Noted extends { readonly use: Use }>(noted: Noted): Noted {
    noted.use.at = this.#clock.now()
    return noted
  }

  #keyOfHash(hash: string): Key | undefined {
    const key = this.#keysByHash.get(hash)
    if (key) return this.#isValid(key) ? key : undefined
    const old = this.#keysByOldHash.get(hash)
    return old && this.#isValid(old) && (old.row.previous_until ?? 0) > this.#clock.now() ? old : undefined
  }

  #keyOf(email: string, password: string): Key | undefined {
    const key = this.#keyOfHash(sha256Hex(password))
    // Compared also when the key is unknown, so that every refusal takes the same time.
    const expected = key?.holder?.email_key ?? emailKeyOf(key?.account.email ?? '')
    const isOwner = sameText(emailKeyOf(email), expected)
    return isOwner ? key : undefined
  }

  /** The account of an API key, which does not count as used. */
  accountIdOfKey(email: string, apiKey: string): string | undefined {
    return this.#keyOf(email, apiKey)?.row.account_id
  }

  /** The account of a queue token, which does not count as used. */
  accountIdOfToken(token: string): string | undefined {
    return this.#tokenOf(token)?.account.account_id
  }

  #tokenOf(token: string): Token | undefined {
    const found = this.#tokensByHash.get(sha256Hex(token))
    return found && found.until > this.#clock.now() ? found : undefined
  }

  bearer(token: string | undefined, ip: string): Caller | undefined {
    const found = this.#tokenOf(token ?? '')
    if (!found) return undefined
    const { account, source, scope, access } = this.#noted(found)
    const caller = callerOf(account, source, access, ip)
    return scope ? { ...caller, scope } : caller
  }

  /** All accounts as they are stored. */
  get rows(): readonly AccountRow[] {
    return [...this.#accounts.values()]
  }

  /** The account with this id, if there is one. */
  account(accountId: string): Account | undefined {
    const row = this.#accounts.get(accountId)
    return row && accountOf(row)
  }

  /** The account whose queue token holds this `UserID`; undefined also while it is suspended: its webhooks are refused. */
  accountOfQueueUser(userId: string): Account | undefined {
    const row = this.#accountsByUser.get(userId)
    return row && this.standingOf(row.account_id) === 'active' ? accountOf(row) : undefined
  }

  /** The signing keys of an account that exists. */
  signingKeys(accountId: string): SigningKeys {
    const row = this.#accounts.get(accountId)
    if (!row) throw new Error(`no account has the id ${accountId}`)
    return { current: row.signing_current, next: row.signing_next }
  }
}

/** Who may act for whom, as the store has it. */
export interface StoredAccess {
  readonly accounts: readonly AccountRow[]
  readonly keys: readonly ApiKeyRow[]
  readonly members: readonly MemberRow[]
  readonly tokens: readonly QueueTokenRow[]
}

function scopeOf({ scope: kind, scope_name }: QueueTokenRow): TokenScope | undefined {
  if (kind === 'all') return undefined
  // A name that is missing matches nothing: no queue and no key has an empty one.
  return kind === 'publish' || kind === 'read' ? { kind } : { kind, name: scope_name ?? '' }
}

function accountOf(row: AccountRow): Account {
  return { accountId: row.account_id, email: row.email, type: row.type, queueUserId: row.queue_user_id }
}

/** The role finance may only read. */
function accessOf({ row, holder }: Key): Caller['access'] {
  return row.read_only === 1 || holder?.role === 'finance' ? 'read' : 'write'
}

function callerOfKey(key: Key, ip: string): Caller {
  const caller = callerOf(key.account, `API_KEY - ${key.row.name}`, accessOf(key), ip)
  return key.holder ? { ...caller, email: key.holder.email, role: key.holder.role } : caller
}

function callerOf(account: KnownAccount, source: string, access: Caller['access'], ip: string): Caller {
  const { account_id: accountId, email, type: accountType, dailyMessages } = account
  const caller = { accountId, email, accountType, source, access, ip }
  return dailyMessages === undefined ? caller : { ...caller, dailyMessages }
}

/** E-mail and API key of an `Authorization` header; both empty when it is missing or not Basic. */
function parseBasic(header: string | undefined): { email: string; password: string } {
  const [, encoded = ''] = /^basic +(\S+) *$/i.exec(header ?? '') ?? []
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon < 0) return { email: '', password: '' }
  return { email: text.slice(0, colon), password: text.slice(colon + 1) }
}

/** Compares digests in constant time: `timingSafeEqual` needs inputs of equal length. */
function sameText(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(one), digest(other))
}
