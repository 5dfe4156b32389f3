import { type Clock, randomSecret, sha256Hex } from '../base/index.js'
import { SESSION_LASTS_MS, type SignInBody } from '../contract/console/console.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Caller, cookieNameOf, type SessionKeeper } from '../http/index.js'
import type { Store } from '../store/index.js'
import type { AccountDirectory } from './directory.js'
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

/** Failed sign-ins of one address for one account in one window; what fails then is told to wait for the window to end. */
export const MOST_FAILED_SIGN_INS = 10
/** Length of a window. */
export const SIGN_IN_WINDOW_MS = 60_000
/** Beyond this many pairs of address and account the oldest window is forgotten, so that memory stays bounded. */
const MOST_PAIRS = 10_000

interface Window {
  readonly endsAt: number
  readonly failures: number
}

/**
 * Counts failed sign-ins by address and account. In memory: a key cannot be guessed anyway, this only keeps guessing cheap
 * for us. It is asked after a sign-in has failed: whoever has the right key is never kept out by others, who may fail
 * behind the same proxy or for the same account.
 */
class FailedSignIns {
  readonly #clock: Clock
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Notes a failed sign-in.
   * @throws HomeportError `sign_in_limit` when there were too many before.
   */
  note(ip: string, email: string): void {
    const pair = `${ip} ${email.trim().toLowerCase()}`
    this.#refuse(this.#current(pair))
    this.#count(pair)
  }

  #refuse(window: Window | undefined): void {
    if (!window || window.failures < MOST_FAILED_SIGN_INS) return
    const retryAfterSeconds = Math.ceil((window.endsAt - this.#clock.now()) / 1000)
    throw new HomeportError('sign_in_limit', { retryAfterSeconds })
  }

  #count(pair: string): void {
    const { endsAt, failures } = this.#current(pair) ?? { endsAt: this.#clock.now() + SIGN_IN_WINDOW_MS, failures: 0 }
    this.#windows.set(pair, { endsAt, failures: failures + 1 })
    const [oldest] = this.#windows.keys()
    if (this.#windows.size > MOST_PAIRS && oldest !== undefined) this.#windows.delete(oldest)
  }

  #current(pair: string): Window | undefined {
    const window = this.#windows.get(pair)
    if (window && window.endsAt > this.#clock.now()) return window
    this.#windows.delete(pair)
    return undefined
  }
}
