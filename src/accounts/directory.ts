import { createHash, timingSafeEqual } from 'node:crypto'
import { type Clock, sha256Hex } from '../base/index.js'
import type { Authenticator, Caller, Standing } from '../http/index.js'
import {
  type Access,
  emailKeyOf,
  type Key,
  type KnownAccount,
  memberKey,
  readAccess,
  type StoredAccess,
  type Token,
} from './access.js'
import type * as accountsTransactions from './transactions/accounts.js'
import type { LastUse } from './transactions/queue-tokens.js'

type AccountRow = accountsTransactions.AccountRow

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

/**
 * All accounts and keys, in memory. It identifies callers. Secrets are looked up by their SHA-256: the
 * time of a lookup can only reveal something about hashes, and an attacker cannot choose an input whose
 * hash approaches that of an unknown secret.
 */
export class AccountDirectory implements Authenticator {
  readonly #clock: Clock
  readonly #freeDailyMessages: number | undefined
  /** The rows of the last load. */
  #access: Access
  /** When keys and tokens were used last since the start, Unix milliseconds, by id. */
  readonly #uses = new Map<string, number>()

  /** @param freeDailyMessages the daily message limit of free accounts; `undefined`: none. */
  constructor(clock: Clock, freeDailyMessages?: number) {
    this.#clock = clock
    this.#freeDailyMessages = freeDailyMessages
    this.#access = readAccess({ accounts: [], keys: [], members: [], tokens: [] }, freeDailyMessages)
  }

  /** Replaces everything with the rows of the store. */
  load(stored: StoredAccess): void {
    this.#access = readAccess(stored, this.#freeDailyMessages)
    const ids = new Set([...stored.keys.map((key) => key.key_id), ...stored.tokens.map((token) => token.token_id)])
    for (const id of this.#uses.keys()) if (!ids.has(id)) this.#uses.delete(id)
  }

  /** The id of the operator's account. */
  get firstId(): string | undefined {
    return this.#access.operatorId
  }

  /** Whether callers may act for an account. A team has the standing of its owner's account. */
  standingOf(accountId: string): Standing {
    const { standings, accounts } = this.#access
    return standings.get(accountId) ?? (accounts.has(accountId) ? 'active' : 'gone')
  }

  /** The accounts and teams that callers may not act for, because they are suspended or being deleted. */
  get heldIds(): ReadonlySet<string> {
    return this.#access.heldIds
  }

  /** Most databases of an account or team, where the operator has set a limit. */
  databaseLimitOf(accountId: string): number | undefined {
    const account = this.#access.accounts.get(accountId)
    const owner = this.#access.ownerOf.get(accountId)
    return account?.database_limit ?? owner?.database_limit ?? undefined
  }

  /** Daily message limit of an account or team; `undefined`: no limit. */
  dailyMessagesOf(accountId: string): number | undefined {
    return this.#access.accounts.get(accountId)?.dailyMessages
  }

  /** When a key or token was used last since the start, Unix milliseconds. */
  lastUseOf(id: string): number | undefined {
    return this.#uses.get(id)
  }

  /** The keys and tokens that were used after a moment, Unix milliseconds. */
  usedSince(moment: number): { keys: LastUse[]; tokens: LastUse[] } {
    const found = { keys: [] as LastUse[], tokens: [] as LastUse[] }
    for (const [id, at] of this.#uses) {
      if (at > moment) (this.#access.keysById.has(id) ? found.keys : found.tokens).push({ id, at })
    }
    return found
  }

  basic(header: string | undefined, ip: string): Caller | undefined {
    const { email, password } = parseBasic(header)
    const key = this.#keyOf(email, password)
    return key && this.#callerOf(key, ip)
  }

  /** The id of an API key, if it belongs to this e-mail. */
  keyIdOf(email: string, apiKey: string): string | undefined {
    return this.#keyOf(email, apiKey)?.row.key_id
  }

  /** Whether the user of a caller may still write for its account. The owner of an account always may. */
  isStillMember({ accountId, email, role }: Caller): boolean {
    if (role === undefined) return true
    const member = this.#access.members.get(memberKey(accountId, emailKeyOf(email)))
    return member !== undefined && member.role !== 'finance'
  }

  /** The caller of the API key with this id, while the key exists and its holder is a member. */
  callerOfKeyId(keyId: string, ip: string): Caller | undefined {
    const key = this.#access.keysById.get(keyId)
    return key && this.#isValid(key) ? this.#callerOf(key, ip) : undefined
  }

  /**
   * The caller of the API key with this id, while the key is accepted with the secret
   * of this hash and its holder is a member.
   * @param hash `null`: the hash is unknown, so the key must never have been rotated.
   */
  callerOfSecret(keyId: string, hash: string | null, ip: string): Caller | undefined {
    const key = this.#access.keysById.get(keyId)
    const isAccepted = hash === null ? key?.row.previous_hash === null : this.#keyOfHash(hash) === key
    return key && isAccepted ? this.callerOfKeyId(keyId, ip) : undefined
  }

  #isValid({ row }: Key): boolean {
    return row.expires_at === null || row.expires_at > this.#clock.now()
  }

  /** Records that a key is used, and returns its caller. */
  #callerOf(key: Key, ip: string): Caller {
    this.#uses.set(key.row.key_id, this.#clock.now())
    return callerOfKey(key, ip)
  }

  #keyOfHash(hash: string): Key | undefined {
    const key = this.#access.keysByHash.get(hash)
    if (key) return this.#isValid(key) ? key : undefined
    const old = this.#access.keysByOldHash.get(hash)
    return old && this.#isValid(old) && (old.row.previous_until ?? 0) > this.#clock.now() ? old : undefined
  }

  #keyOf(email: string, password: string): Key | undefined {
    const key = this.#keyOfHash(sha256Hex(password))
    // E-mails are compared even if the key is unknown, so that every refusal takes the same time.
    const expected = key?.holder?.email_key ?? emailKeyOf(key?.account.email ?? '')
    const isOwner = sameText(emailKeyOf(email), expected)
    return isOwner ? key : undefined
  }

  /** The account of an API key. This does not count as a use of the key. */
  accountIdOfKey(email: string, apiKey: string): string | undefined {
    return this.#keyOf(email, apiKey)?.row.account_id
  }

  /** The account of a queue token. This does not count as a use of the token. */
  accountIdOfToken(token: string): string | undefined {
    return this.#tokenOf(token)?.account.account_id
  }

  #tokenOf(token: string): Token | undefined {
    const found = this.#access.tokensByHash.get(sha256Hex(token))
    return found && found.until > this.#clock.now() ? found : undefined
  }

  bearer(token: string | undefined, ip: string): Caller | undefined {
    const found = this.#tokenOf(token ?? '')
    if (!found) return undefined
    const { id, account, source, scope, access } = found
    this.#uses.set(id, this.#clock.now())
    const caller = callerOf(account, source, access, ip)
    return scope ? { ...caller, scope } : caller
  }

  /** All accounts as they are stored. */
  get rows(): readonly AccountRow[] {
    return [...this.#access.accounts.values()]
  }

  /** The account with this id, if there is one. */
  account(accountId: string): Account | undefined {
    const row = this.#access.accounts.get(accountId)
    return row && accountOf(row)
  }

  /**
   * The account whose queue token holds this `UserID`; `undefined` also if it is
   * suspended, so that its webhooks are refused.
   */
  accountOfQueueUser(userId: string): Account | undefined {
    const row = this.#access.accountsByUser.get(userId)
    return row && this.standingOf(row.account_id) === 'active' ? accountOf(row) : undefined
  }

  /** The signing keys of an account that exists. */
  signingKeys(accountId: string): SigningKeys {
    const row = this.#access.accounts.get(accountId)
    if (!row) throw new Error(`no account has the id ${accountId}`)
    return { current: row.signing_current, next: row.signing_next }
  }
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
