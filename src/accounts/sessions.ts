import { type Clock, randomSecret, sha256Hex } from '../base/index.js'
import { SESSION_LASTS_MS, type SignInBody } from '../contract/console/console.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Caller, cookieNameOf, type SessionKeeper } from '../http/index.js'
import type { Store } from '../store/index.js'
import type { AccountDirectory } from './directory.js'
import { FailedSignIns } from './sessions-limit.js'
import * as consoleSessions from './transactions/console-sessions.js'

const SECRET_BYTES = 32
/** A session that is used is written anew at most this often. */
const EXTEND_EVERY_MS = 10 * 60 * 1000

/** What sessions are made of. */
export interface SessionsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly directory: AccountDirectory
  /** Identity of the store. */
  readonly installationId: () => string
}

/** A session that has just begun; its secret is nowhere else. */
export interface NewSession {
  readonly secret: string
  readonly caller: Caller
}

/**
 * Sessions of the console. Each stands for one API key and has exactly its rights: when the key ends, or the membership
 * of its holder, the session opens nothing any more. The store keeps the hash of the secret, so every node knows every
 * session, and a restart signs nobody out.
 */
export class Sessions implements SessionKeeper {
  readonly #options: SessionsOptions
  readonly #failures: FailedSignIns

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#failures = new FailedSignIns(options.clock)
  }

  get cookieName(): string {
    return cookieNameOf(this.#options.installationId())
  }

  /**
   * Begins a session.
   * @throws HomeportError `sign_in_refused`, or `sign_in_limit` when the address has failed too often for this account.
   */
  async begin({ email, api_key }: SignInBody, ip: string): Promise<NewSession> {
    const { store, clock, directory } = this.#options
    const keyId = directory.keyIdOf(email.trim(), api_key.trim())
    const caller = keyId === undefined ? undefined : directory.callerOfKeyId(keyId, ip)
    if (keyId === undefined || caller === undefined) {
      this.#failures.note(ip, email)
      throw new HomeportError('sign_in_refused', {})
    }
    const secret = randomSecret(SECRET_BYTES)
    const now = clock.now()
    const row = { key_id: keyId, created_at: now, expires_at: now + SESSION_LASTS_MS }
    await store.run(consoleSessions.create, { ...row, secret_hash: sha256Hex(secret) })
    return { secret, caller }
  }

  async caller(secret: string, ip: string): Promise<Caller | undefined> {
    const { store, clock, directory } = this.#options
    const now = clock.now()
    const secretHash = sha256Hex(secret)
    const session = await store.run(consoleSessions.find, { secretHash, at: now })
    if (!session) return undefined
    const expiresAt = now + SESSION_LASTS_MS
    if (expiresAt - session.expires_at > EXTEND_EVERY_MS) {
      await store.run(consoleSessions.extend, { secretHash, expiresAt })
    }
    return directory.callerOfKeyId(session.key_id, ip)
  }

  /** Ends the session with this secret, if there is one. */
  async end(secret: string): Promise<void> {
    await this.#options.store.run(consoleSessions.end, { secretHash: sha256Hex(secret) })
  }
}
