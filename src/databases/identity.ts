import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { randomSecret } from '../base/index.js'

/** Number of slugs offered to the store, which takes the first free one. */
const SLUG_CANDIDATES = 8

/** The credentials of a database. All are random and distinct. */
export interface Credentials {
  /** Password of the user `default`: 32 hexadecimal digits. */
  readonly password: string
  /** REST token for reading and writing; also a password of `default`. */
  readonly restToken: string
  /** REST token for reading; also the password of `default_ro`. */
  readonly readOnlyRestToken: string
}

/** Id, slugs and credentials of a new database. */
export interface Identity extends Credentials {
  readonly databaseId: string
  readonly slugs: readonly string[]
}

/** Generates the identity of a new database. */
export function newIdentity(): Identity {
  return {
    databaseId: randomUUID(),
    slugs: Array.from({ length: SLUG_CANDIDATES }, newSlug),
    ...newCredentials(),
  }
}

/** Generates new credentials. */
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

/** First words of slugs: friendly in every combination. */
const ADJECTIVES: readonly string[] = (
  'able amber agile ample apt azure balmy bold brave bright brisk broad calm candid careful cheery civil clear clever ' +
  'coral cosy crisp curious daring deep eager early easy even fair fast fine firm fond frank free fresh gentle glad ' +
  'golden good grand green handy happy hardy honest humble jolly keen kind lively loyal lucid lucky lunar mellow merry ' +
  'mighty modest neat nimble noble open patient placid plucky polite prime proud quick quiet rapid ready regal robust ' +
  'rosy safe sharp silver smart smooth snug solar solid sound spry stable steady still sturdy sunny sure swift tidy ' +
  'trim true trusty upbeat urban valid vast vivid warm wise witty young zesty'
).split(' ')

/** Second words of slugs. */
const NOUNS: readonly string[] = (
  'anchor arbor badger basin bay beacon beaver bison boat breeze bridge brook cabin canoe canyon cedar cliff cloud ' +
  'comet compass cove crane creek delta dolphin dune eagle falcon fern ferry finch fjord forest fox garden glade ' +
  'grove gull harbor hare hawk heron hill island jetty kayak kestrel lagoon lake lantern lark ledge lighthouse lily ' +
  'lynx maple marina marlin marsh meadow mesa moose moss oak oasis orca osprey otter owl pebble pelican pier pine ' +
  'plover pond port prairie puffin quay rain raven reef ridge river robin sail salmon seal shell shore sloop spruce ' +
  'squid star stone stream swan tern tide trail trout tulip valley vessel walrus wave whale willow wren yacht'
).split(' ')
