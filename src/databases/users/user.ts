import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { randomSecret } from '../../base/index.js'

const UserSchema = Type.Object({
  name: Type.String(),
  /** A user that is `off` cannot log in; connections that are logged in stay. */
  status: Type.Union([Type.Literal('on'), Type.Literal('off')]),
  passwords: Type.Array(
    Type.Object({
      /** SHA-256 of the password, hexadecimal. */
      password: Type.String(),
      /** The same of the whole token that it came in, which is taken as a password too. */
      token: Type.String(),
    }),
  ),
  /** Patterns of keys: `~*`, `%R~news:*`. */
  keys: Type.Array(Type.String()),
  /** Patterns of channels: `&*`. */
  channels: Type.Array(Type.String()),
  /** What it may run, each rule over those before it: `-@all`, `+@read`, `-keys`. */
  commands: Type.Array(Type.String()),
  /** Random; what the gateway logs in to engines with, and what its REST tokens are derived from. */
  secret: Type.String(),
})

/** A user of a database's data whom its owner made (reference redis 3.2). */
export type StoredUser = Static<typeof UserSchema>

const checker = Compile(Type.Array(UserSchema))
const NOBODY: readonly StoredUser[] = []

/** The users that every database has; nobody can change them. */
const BUILT_IN_USERS = ['default', 'default_ro'] as const

/** Whether every database has this user. */
export function isBuiltIn(name: string): boolean {
  return BUILT_IN_USERS.some((known) => known === name)
}

/** Reads the users of a stored database. @throws Error when they were not written by `writeUsers`. */
export function readUsers(row: { readonly database_id: string; readonly acl_users: string }): readonly StoredUser[] {
  // Most databases have none, and lists of databases ask for each of them.
  if (row.acl_users === '[]') return NOBODY
  const users: unknown = JSON.parse(row.acl_users)
  if (checker.Check(users)) return users
  throw new Error(`database ${row.database_id} has unreadable users`)
}

/** Users as they are stored. */
export function writeUsers(users: readonly StoredUser[]): string {
  return JSON.stringify(users)
}

/** A user as SETUSER begins it: it may nothing and cannot log in. */
export function newUser(name: string): StoredUser {
  return { name, ...POWERLESS, secret: randomSecret(32) }
}

/** What a user is after `reset`. */
export const POWERLESS = {
  status: 'off',
  passwords: [],
  keys: [],
  channels: [],
  commands: ['-@all'],
} as const satisfies Omit<StoredUser, 'name' | 'secret'>
