import { createHash, createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'
import { newId, TimeSlice } from '../../base/index.js'
import type { Outbound, ToSign } from '../types.js'

/** Lifetime of a signature. */
const VALID_SECONDS = 300
/** Adds the base64 padding. The SDKs ignore it, but receivers that verify without an SDK compare it. */
const padded = (digest: string): string => `${digest}=`
const EMPTY_HASH = padded(hash('sha256', '', 'base64url'))
/** The first part of each token. */
const TOKEN_HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')
/** Prepared keys kept in memory. */
const MAX_PREPARED_KEYS = 1_000

/** Preparing a key costs more than signing with it, and an account signs many deliveries with the same key. */
const preparedKeys = new Map<string, KeyObject>()

function prepared(key: string): KeyObject {
  const known = preparedKeys.get(key)
  if (known) return known
  const made = createSecretKey(key, 'utf8')
  const oldest = preparedKeys.size >= MAX_PREPARED_KEYS ? preparedKeys.keys().next().value : undefined
  if (oldest !== undefined) preparedKeys.delete(oldest)
  preparedKeys.set(key, made)
  return made
}

function bodyHash(body: Uint8Array | undefined): string {
  return body && body.byteLength > 0 ? padded(hash('sha256', body, 'base64url')) : EMPTY_HASH
}

/** Longer bodies are hashed in slices. Hashing this many bytes takes a few milliseconds. */
const LONG_BYTES = 4 * 2 ** 20
const SLICE_BYTES = 2 ** 20

/**
 * The hash of a long body for its signature, computed in slices that yield to the
 * event loop; `undefined` for other bodies.
 */
export function longBodyHash(body: Uint8Array | undefined): Promise<string> | undefined {
  return body && body.byteLength > LONG_BYTES ? hashInSlices(body) : undefined
}

async function hashInSlices(body: Uint8Array): Promise<string> {
  const made = createHash('sha256')
  const slice = new TimeSlice()
  for (let from = 0; from < body.byteLength; from += SLICE_BYTES) {
    made.update(body.subarray(from, from + SLICE_BYTES))
    if (slice.isOver) await slice.rest()
  }
  return padded(made.digest('base64url'))
}

/** Input of a signature. */
export interface Signing {
  /** The account's current signing key, as text. */
  readonly key: string
  /** URL of the delivery. */
  readonly url: string
  readonly body: Uint8Array | undefined
  /** Hash of the body, if it is already computed. */
  readonly hash?: string | undefined
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * The value of `Upstash-Signature`: a JWT by HMAC-SHA-256 over the destination and a hash of the body (reference queue
 * 3.2, RFC 7519). Computed on this thread: passing a few hundred bytes to another thread costs more than signing them. A JWT
 * library takes twice as long.
 */
export function signDelivery({ key, url, body, hash: made, now }: Signing): string {
  const seconds = Math.floor(now / 1_000)
  const claims = {
    iss: 'Upstash',
    sub: url,
    exp: seconds + VALID_SECONDS,
    // Long ago, so that a receiver whose clock is behind accepts it. Not 0, which Go libraries treat as a missing claim.
    nbf: 1,
    iat: seconds,
    jti: newId('jwt_', now),
    body: made ?? bodyHash(body),
  }
  const signed = `${TOKEN_HEADER}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  return `${signed}.${createHmac('sha256', prepared(key)).update(signed).digest('base64url')}`
}

/** Input of the headers of one attempt. */
export interface DeliveryHeading {
  readonly message: ToSign
  readonly outbound: Outbound
  /** From `signDelivery`. */
  readonly signature: string
  readonly region: string
}

/** Headers of every delivery. Forwarded headers cannot replace them. */
const OWN = new Set([
  'User-Agent',
  'Upstash-Message-Id',
  'Upstash-Retried',
  'Upstash-Region',
  'Upstash-Caller-Ip',
  'Upstash-Schedule-Id',
  'Upstash-Topic-Name',
  'Upstash-Signature',
])

/**
 * All headers of one attempt as a flat list of names and values: first those of every delivery (reference queue 3.1),
 * then those of the request.
 */
export function deliveryHeaders({ message, outbound, signature, region }: DeliveryHeading): string[] {
  const flat = ['User-Agent', 'Upstash-QStash', 'Upstash-Message-Id', message.messageId]
  flat.push('Upstash-Retried', String(message.retried), 'Upstash-Region', region, 'Upstash-Signature', signature)
  if (message.topic !== undefined) flat.push('Upstash-Topic-Name', message.topic)
  if (message.scheduleId !== undefined) flat.push('Upstash-Schedule-Id', message.scheduleId)
  if (message.callerIp !== undefined) flat.push('Upstash-Caller-Ip', message.callerIp)
  for (const name in outbound.headers) {
    if (OWN.has(name)) continue
    for (const value of outbound.headers[name] ?? []) flat.push(name, value)
  }
  return flat
}
