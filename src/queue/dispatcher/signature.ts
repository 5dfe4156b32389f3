import { createSecretKey, hash, type KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { newId } from '../../base/index.js'

/** How long a signature is good for. */
const VALID_SECONDS = 300
const EMPTY_HASH = hash('sha256', '', 'base64url')
/** Keys of more accounts than this are prepared again each time they come round. */
const MOST_PREPARED_KEYS = 1_000

/** Preparing a key costs more than signing with it, and an account signs many deliveries with one. */
const preparedKeys = new Map<string, KeyObject>()

function prepared(key: string): KeyObject {
  const known = preparedKeys.get(key)
  if (known) return known
  const made = createSecretKey(key, 'utf8')
  const oldest = preparedKeys.size >= MOST_PREPARED_KEYS ? preparedKeys.keys().next().value : undefined
  if (oldest !== undefined) preparedKeys.delete(oldest)
  preparedKeys.set(key, made)
  return made
}

function bodyHash(body: Uint8Array | undefined): string {
  return body && body.byteLength > 0 ? hash('sha256', body, 'base64url') : EMPTY_HASH
}

/** What a delivery is signed with and about. */
export interface Signing {
  /** The account's current signing key, as text. */
  readonly key: string
  /** Where the delivery goes. */
  readonly url: string
  readonly body: Uint8Array | undefined
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * The value of `Upstash-Signature`: a JWT by HMAC-SHA-256 over the destination and a hash of the body (reference queue
 * 3.2). It is made here and now: handing a few hundred bytes to another thread costs more than signing them.
 */
export function signDelivery({ key, url, body, now }: Signing): string {
  const seconds = Math.floor(now / 1_000)
  const claims = {
    iss: 'Upstash',
    sub: url,
    exp: seconds + VALID_SECONDS,
    // 0: a receiver whose clock is behind must not refuse.
    nbf: 0,
    iat: seconds,
    jti: newId('jwt_', now),
    body: bodyHash(body),
  }
  return jwt.sign(claims, prepared(key), { algorithm: 'HS256' })
}
