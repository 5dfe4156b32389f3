import { createHmac, timingSafeEqual } from 'node:crypto'
import { randomSecret, sha256Hex } from '../../base/index.js'
import type { StoredUser } from './user.js'

/** The least strength of a password against guessing, in bits. */
const LEAST_ENTROPY_BITS = 64
const GENERATED_BYTES = 32
const SEAL_BYTES = 16

/** A password of a user as it is kept. */
export type StoredPassword = StoredUser['passwords'][number]

/** How hard a password is to guess, bits: the variety of its characters over its length. */
export function entropyBits(password: string): number {
  const characters = [...password]
  const counts = new Map<string, number>()
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= count * Math.log2(count / characters.length)
  return bits
}

/** Whether a password is good enough to be one. */
export function isStrong(password: string): boolean {
  return entropyBits(password) >= LEAST_ENTROPY_BITS
}

/**
 * Wraps a password, or a new one, in a token that only SETUSER of this very user takes, so that no password gets there
 * whose strength nobody has seen.
 * @param key a secret of the database.
 */
export function makeToken(user: string, password: string | undefined, key: string): string {
  const text = Buffer.from(password ?? randomSecret(GENERATED_BYTES)).toString('base64url')
  return `${text}.${seal(user, text, key).toString('base64url')}`
}

/** What is kept of the password in a token; undefined when the token was not made for this user here. */
export function openToken(user: string, token: string, key: string): StoredPassword | undefined {
  const [text = '', sealed = '', ...rest] = token.split('.')
  const given = Buffer.from(sealed, 'base64url')
  const wanted = seal(user, text, key)
  if (rest.length > 0 || given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined
  return { password: sha256Hex(Buffer.from(text, 'base64url').toString()), token: sha256Hex(token) }
}

/** Whether a text is this password, or the token that it came in. Takes the same time for every wrong one. */
export function matchesPassword(stored: StoredPassword, given: string): boolean {
  const hash = Buffer.from(sha256Hex(given))
  const isPassword = timingSafeEqual(hash, Buffer.from(stored.password))
  return timingSafeEqual(hash, Buffer.from(stored.token)) || isPassword
}

/** The REST token that a user gets for one of its passwords. It is void as soon as the user loses that password. */
export function restTokenOf(user: StoredUser, stored: StoredPassword): string {
  return createHmac('sha256', user.secret).update(`rest\0${stored.password}`).digest('base64url')
}

function seal(user: string, text: string, key: string): Buffer {
  return createHmac('sha256', key).update(`acl-token\0${user}\0${text}`).digest().subarray(0, SEAL_BYTES)
}
