import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { randomSecret, sha256Hex } from '../../base/index.js'

const UserSchema = Type.Object({
  name: Type.String(),
  /** A user that is `off` cannot log in; connections that are logged in stay. */
  status: Type.Union([Type.Literal('on'), Type.Literal('off')]),
  passwords: Type.Array(
    Type.Object({
      /** SHA-256 of the password, hexadecimal. */
      password: Type.String(),
      /** SHA-256 of the whole token that it came in, which is accepted as a password too. */
      token: Type.String(),
    }),
  ),
  /** Patterns of keys: `~*`, `%R~news:*`. */
  keys: Type.Array(Type.String()),
  /** Patterns of channels: `&*`. */
  channels: Type.Array(Type.String()),
  /** Rules for commands; each overrides those before it: `-@all`, `+@read`, `-keys`. */
  commands: Type.Array(Type.String()),
  /** Random: the gateway logs in to engines with it, and the user's REST tokens are derived from it. */
  secret: Type.String(),
})

/** A user that the owner of a database created (reference redis 3.2). */
export type StoredUser = Static<typeof UserSchema>

const checker = Compile(Type.Array(UserSchema))
const NOBODY: readonly StoredUser[] = []
/** Caches the users of row objects, which never change: parsing the users of one database may take 15 ms. */
const read = new WeakMap<object, readonly StoredUser[]>()

/** The users that every database has; they cannot be changed. */
const BUILT_IN_USERS = ['default', 'default_ro'] as const

/** Whether a name is that of a built-in user. */
export function isBuiltIn(name: string): boolean {
  return BUILT_IN_USERS.some((known) => known === name)
}

/** Reads the users of a stored database. @throws Error when they were not written by `writeUsers`. */
export function readUsers(row: { readonly database_id: string; readonly acl_users: string }): readonly StoredUser[] {
  // Fast path: most databases have no users, and lists read this for each database.
  if (row.acl_users === '[]') return NOBODY
  const known = read.get(row)
  if (known) return known
  const users: unknown = JSON.parse(row.acl_users)
  if (checker.Check(users)) {
    read.set(row, users)
    return users
  }
  throw new Error(`database ${row.database_id} has unreadable users`)
}

/** Serialises users for the store. */
export function writeUsers(users: readonly StoredUser[]): string {
  return JSON.stringify(users)
}

/** A new user, as SETUSER starts it: without permissions and unable to log in. */
export function newUser(name: string): StoredUser {
  return { name, ...NO_PERMISSIONS, secret: randomSecret(32) }
}

/** The state of a user after `reset`. */
export const NO_PERMISSIONS = {
  status: 'off',
  passwords: [],
  keys: [],
  channels: [],
  commands: ['-@all'],
} as const satisfies Omit<StoredUser, 'name' | 'secret'>

/** The least strength of a password against guessing, in bits. */
const MIN_ENTROPY_BITS = 64
const GENERATED_BYTES = 32
const SIGNATURE_BYTES = 16

/** A password of a user as it is stored. */
export type StoredPassword = StoredUser['passwords'][number]

/** The strength of a password in bits: the Shannon entropy of its characters times its length. */
export function entropyBits(password: string): number {
  const characters = [...password]
  const counts = new Map<string, number>()
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= count * Math.log2(count / characters.length)
  return bits
}

/** Whether a password is strong enough. */
export function isStrong(password: string): boolean {
  return entropyBits(password) >= MIN_ENTROPY_BITS
}

/**
 * Signs a password, or a generated one, into a token that SETUSER accepts for this user only. So every password that is
 * set has passed the strength check.
 * @param key a secret of the database.
 */
export function makeToken(user: string, password: string | undefined, key: string): string {
  const text = Buffer.from(password ?? randomSecret(GENERATED_BYTES)).toString('base64url')
  return `${text}.${signatureOf(user, text, key).toString('base64url')}`
}

/** The hashes to store for the password in a token; undefined when the token is not signed for this user and database. */
export function openToken(user: string, token: string, key: string): StoredPassword | undefined {
  const [text = '', sealed = '', ...rest] = token.split('.')
  const given = Buffer.from(sealed, 'base64url')
  const expected = signatureOf(user, text, key)
  if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
  return { password: sha256Hex(Buffer.from(text, 'base64url').toString()), token: sha256Hex(token) }
}

/** Whether a text is this password, or the token that it came in. Compares in constant time. */
export function matchesPassword(stored: StoredPassword, given: string): boolean {
  const hash = Buffer.from(sha256Hex(given))
  const isPassword = timingSafeEqual(hash, Buffer.from(stored.password))
  return timingSafeEqual(hash, Buffer.from(stored.token)) || isPassword
}

/** The REST token of a user for one of its passwords. It is invalid as soon as the user loses that password. */
export function restTokenOf(user: StoredUser, stored: StoredPassword): string {
  return createHmac('sha256', user.secret).update(`rest\0${stored.password}`).digest('base64url')
}

function signatureOf(user: string, text: string, key: string): Buffer {
  return createHmac('sha256', key).update(`acl-token\0${user}\0${text}`).digest().subarray(0, SIGNATURE_BYTES)
}
