import { type Clock, randomSecret, sha256Hex } from '../base/index.js'
import { SESSION_LASTS_MS, type SignInBody } from '../contract/console/session.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Caller, cookieNameOf, type SessionResolver } from '../http/index.js'
import type { Store } from '../store/index.js'
import type { AccountDirectory } from './directory.js'
import * as consoleSessions from './transactions/console-sessions.js'

const SECRET_BYTES = 32
/** The expiry of a session in use is extended at most this often. */
const EXTEND_EVERY_MS = 10 * 60 * 1000

/** What `Sessions` is built from. */
export interface SessionsDeps {
  readonly store: Store
  readonly clock: Clock
  readonly directory: AccountDirectory
  /** Identity of the store. */
  readonly installationId: () => string
}

/** A new session. Its secret is not stored. */
export interface NewSession {
  readonly secret: string
  readonly caller: Caller
}

/**
 * Sessions of the console. Each belongs to one API key and has its rights. A session becomes invalid when the key is
 * deleted, when its holder leaves the team, or when the key's secret with which it began is no longer accepted. The
 * store has the hash of the session's secret, so every node knows every session, and a restart signs nobody out.
 */
export class Sessions implements SessionResolver {
  readonly #deps: SessionsDeps
  readonly #failures: FailedSignIns

  constructor(deps: SessionsDeps) {
    this.#deps = deps
    this.#failures = new FailedSignIns(deps.clock)
  }

  get cookieName(): string {
    return cookieNameOf(this.#deps.installationId())
  }

  /**
   * Creates a session.
   * @throws HomeportError `sign_in_refused`, or `sign_in_limit` when the address has failed too often for this account.
   */
  async begin({ email, api_key }: SignInBody, ip: string): Promise<NewSession> {
    const { store, clock, directory } = this.#deps
    const apiKey = api_key.trim()
    const keyId = directory.keyIdOf(email.trim(), apiKey)
    const caller = keyId === undefined ? undefined : directory.callerOfKeyId(keyId, ip)
    if (keyId === undefined || caller === undefined) {
      this.#failures.note(ip, email)
      throw new HomeportError('sign_in_refused', {})
    }
    if (directory.standingOf(caller.accountId) === 'suspended') throw new HomeportError('account_suspended', {})
    const secret = randomSecret(SECRET_BYTES)
    const now = clock.now()
    const validity = { created_at: now, expires_at: now + SESSION_LASTS_MS }
    const hashes = { secret_hash: sha256Hex(secret), key_hash: sha256Hex(apiKey) }
    await store.run(consoleSessions.create, { ...hashes, ...validity, key_id: keyId })
    return { secret, caller }
  }

  async caller(secret: string, ip: string): Promise<Caller | undefined> {
    const { store, clock, directory } = this.#deps
    const now = clock.now()
    const secretHash = sha256Hex(secret)
    const session = await store.run(consoleSessions.find, { secretHash, at: now })
    const caller = session && directory.callerOfSecret(session.key_id, session.key_hash, ip)
    if (!caller) return undefined
    const expiresAt = now + SESSION_LASTS_MS
    if (expiresAt - session.expires_at > EXTEND_EVERY_MS) {
      await store.run(consoleSessions.extend, { secretHash, expiresAt })
    }
    return caller
  }

  /** Ends the session with this secret, if there is one. */
  async end(secret: string): Promise<void> {
    await this.#deps.store.run(consoleSessions.end, { secretHash: sha256Hex(secret) })
  }
}

/** Most failed sign-ins per address, account and window. Further failures get a `Retry-After`. */
export const MAX_FAILED_SIGN_INS = 10
/** Length of a window, milliseconds. */
export const SIGN_IN_WINDOW_MS = 60_000
/** With more pairs of address and account than this, the oldest window is evicted. */
const MAX_PAIRS = 10_000

interface Window {
  readonly endsAt: number
  readonly failures: number
}

/**
 * Counts failed sign-ins by address and account, in memory. Keys are too long to be guessed; the limit only keeps attempts
 * cheap for the server. It applies only after a sign-in has failed, so failures of others behind the same proxy or for
 * the same account never lock out somebody with a valid key.
 */
class FailedSignIns {
  readonly #clock: Clock
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Counts a failed sign-in.
   * @throws HomeportError `sign_in_limit` when there were too many in this window.
   */
  note(ip: string, email: string): void {
    const pair = `${ip} ${email.trim().toLowerCase()}`
    this.#refuse(this.#current(pair))
    this.#count(pair)
  }

  #refuse(window: Window | undefined): void {
    if (!window || window.failures < MAX_FAILED_SIGN_INS) return
    const retryAfterSeconds = Math.ceil((window.endsAt - this.#clock.now()) / 1000)
    throw new HomeportError('sign_in_limit', { retryAfterSeconds })
  }

  #count(pair: string): void {
    const { endsAt, failures } = this.#current(pair) ?? { endsAt: this.#clock.now() + SIGN_IN_WINDOW_MS, failures: 0 }
    this.#windows.set(pair, { endsAt, failures: failures + 1 })
    const [oldest] = this.#windows.keys()
    if (this.#windows.size > MAX_PAIRS && oldest !== undefined) this.#windows.delete(oldest)
  }

  #current(pair: string): Window | undefined {
    const window = this.#windows.get(pair)
    const leftMs = window ? window.endsAt - this.#clock.now() : 0
    // If more than a whole window is left, the clock was set back, and the window no longer counts.
    if (leftMs > 0 && leftMs <= SIGN_IN_WINDOW_MS) return window
    this.#windows.delete(pair)
    return undefined
  }
}
