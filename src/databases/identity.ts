import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { randomSecret } from '../base/index.js'
import { ADJECTIVES, NOUNS } from './words.js'

/** How many slugs are offered to the store, which takes the first that is free. */
const SLUG_CANDIDATES = 8

/** What opens a database. All texts are random and distinct. */
export interface Credentials {
  /** Password of the user `default`: 32 hexadecimal digits. */
  readonly password: string
  /** Opens REST for reading and writing; also taken as a password of `default`. */
  readonly restToken: string
  /** Opens REST for reading; also the password of `default_ro`. */
  readonly readOnlyRestToken: string
}

/** What a new database is known by and opened with. */
export interface Identity extends Credentials {
  readonly databaseId: string
  readonly slugs: readonly string[]
}

/** Makes the identity of a new database. */
export function newIdentity(): Identity {
  return {
    databaseId: randomUUID(),
    slugs: Array.from({ length: SLUG_CANDIDATES }, newSlug),
    ...newCredentials(),
  }
}

/** Draws new credentials. */
export function newCredentials(): Credentials {
  return {
    password: randomBytes(16).toString('hex'),
    restToken: randomSecret(36),
    readOnlyRestToken: randomSecret(36),
  }
}

/** A name such as `quiet-harbor-48213`. */
function newSlug(): string {
  const pick = (words: readonly string[]): string => words[randomInt(words.length)] ?? ''
  return `${pick(ADJECTIVES)}-${pick(NOUNS)}-${randomInt(10_000, 100_000)}`
}
