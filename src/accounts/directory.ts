import { createHash, timingSafeEqual } from 'node:crypto'
import { sha256Hex } from '../base/index.js'
import type { Authenticator, Caller } from '../http/index.js'
import type * as accountsTransactions from './transactions/accounts.js'
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

interface Key {
  readonly account: AccountRow
  readonly row: ApiKeyRow
  /** The member who holds a team key. */
  readonly holder: MemberRow | undefined
}

/** The key for comparing e-mails, which ignores case. */
export const emailKeyOf = (email: string): string => email.toLowerCase()

/**
 * All accounts and keys, in memory. Secrets are looked up by their SHA-256: the time of a lookup can only reveal something
 * about hashes, and nobody can choose an input whose hash approaches that of an unknown secret.
 */
export class AccountDirectory implements Authenticator {
  readonly #accounts = new Map<string, AccountRow>()
  readonly #keysByHash = new Map<string, Key>()
  readonly #keysById = new Map<string, Key>()
  readonly #accountsByTokenHash = new Map<string, AccountRow>()
  readonly #accountsByReadTokenHash = new Map<string, AccountRow>()
  readonly #accountsByUser = new Map<string, AccountRow>()

  /** The id of the account that was created first. */
  get firstId(): string | undefined {
    return this.#accounts.keys().next().value
  }

  /** Replaces everything with what the store has. */
  load(accounts: readonly AccountRow[], keys: readonly ApiKeyRow[], members: readonly MemberRow[]): void {
    const indexes = [this.#accounts, this.#keysByHash, this.#keysById, this.#accountsByTokenHash, this.#accountsByUser]
    for (const index of [...indexes, this.#accountsByReadTokenHash]) index.clear()
    for (const account of accounts) {
      this.#accounts.set(account.account_id, account)
      this.#accountsByTokenHash.set(account.queue_token_hash, account)
      this.#accountsByUser.set(account.queue_user_id, account)
      const { queue_read_token_hash: readHash } = account
      if (readHash !== null) this.#accountsByReadTokenHash.set(readHash, account)
    }
    const byMember = new Map(members.map((member) => [`${member.team_id} ${member.email_key}`, member]))
    for (const row of keys) {
      const account = this.#accounts.get(row.account_id)
      const holder = byMember.get(`${row.account_id} ${row.holder}`)
      // The key of a former member is ignored.
      if (!account || (row.holder !== null && !holder)) continue
      const key = { account, row, holder }
      this.#keysByHash.set(row.key_hash, key)
      this.#keysById.set(row.key_id, key)
    }
  }

  basic(header: string | undefined, ip: string): Caller | undefined {
    const { email, password } = parseBasic(header)
    const key = this.#keyOf(email, password)
    return key && callerOfKey(key, ip)
  }

  /** The id of an API key, if it belongs to this e-mail. */
  keyIdOf(email: string, apiKey: string): string | undefined {
    return this.#keyOf(email, apiKey)?.row.key_id
  }

  /** The caller of the API key with this id, while the key exists and its holder is a member. */
  callerOfKeyId(keyId: string, ip: string): Caller | undefined {
    const key = this.#keysById.get(keyId)
    return key && callerOfKey(key, ip)
  }

  #keyOf(email: string, password: string): Key | undefined {
    const key = this.#keysByHash.get(sha256Hex(password))
    // Compared also when the key is unknown, so that every refusal takes the same time.
    const expected = key?.holder?.email_key ?? emailKeyOf(key?.account.email ?? '')
    const isOwner = sameText(emailKeyOf(email), expected)
    return isOwner ? key : undefined
  }

  bearer(token: string | undefined, ip: string): Caller | undefined {
    const hash = sha256Hex(token ?? '')
    const account = this.#accountsByTokenHash.get(hash)
    if (account) return callerOf(account, 'QUEUE_TOKEN', 'write', ip)
    const reader = this.#accountsByReadTokenHash.get(hash)
    return reader && callerOf(reader, 'QUEUE_TOKEN', 'read', ip)
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

  /** The account whose queue token holds this `UserID`, if there is one. */
  accountOfQueueUser(userId: string): Account | undefined {
    const row = this.#accountsByUser.get(userId)
    return row && accountOf(row)
  }

  /** The signing keys of an account that exists. */
  signingKeys(accountId: string): SigningKeys {
    const row = this.#accounts.get(accountId)
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

function callerOf(account: AccountRow, source: string, access: Caller['access'], ip: string): Caller {
  return { accountId: account.account_id, email: account.email, accountType: account.type, source, access, ip }
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
