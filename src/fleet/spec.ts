import { sha256Hex } from '../base/index.js'
import type { EngineSpec, EngineUser } from './types.js'

/** The user of the fleet. Its password is new for each supervisor. */
export const CONTROL_USER = 'homeport-control'
/** The user that replicas log in to their primary with. */
export const REPLICATION_USER = 'homeport-replication'

/** The user that the gateway queries engines about themselves with. */
export const OBSERVER_USER = 'homeport-observer'
/** Rules of the observer. The gateway decides which parts of the answers clients see. */
export const OBSERVER_RULES =
  '-@all +acl|dryrun +config|resetstat +info +lastsave +latency +memory|doctor +role +slowlog'

const DATABASE_ID = /^[A-Za-z0-9_-]{1,64}$/
const REGION = /^[a-z0-9][a-z0-9-]{0,31}$/
const USER_NAME = /^(?!homeport-)[A-Za-z0-9_.-]{1,64}$/
const KEYSPACE_EVENTS = /^[AKEg$lshzxetdmn]*$/
const SETTING_NAME = /^[a-z-]{1,64}$/
const SETTING_VALUE = /^[A-Za-z0-9. -]{0,128}$/
/** ACL rules are one line of printable ASCII, and must not match `PASSWORD_RULE`: they set no password. */
const RULES = /^[\x20-\x7e]*$/
const PASSWORD_RULE = /(?:^|[\s(])(?:[<>#!]|nopass|resetpass|reset\b)/

/** Whether a string is a valid database id, and so a safe directory name. */
export function isDatabaseId(text: string): boolean {
  return DATABASE_ID.test(text)
}

function problemOfUser(user: EngineUser): string | undefined {
  if (!USER_NAME.test(user.name)) return `the user name ${JSON.stringify(user.name)} is not allowed`
  if (user.password === '') return `the user ${user.name} has no password`
  if (!RULES.test(user.rules) || PASSWORD_RULE.test(user.rules)) return `the rules of user ${user.name} are not allowed`
  return undefined
}

function problemOfMembers(spec: EngineSpec): string | undefined {
  const regions = spec.members.map((member) => member.region)
  if (!regions.every((region) => REGION.test(region))) return 'a region has a name that is not allowed'
  if (new Set(regions).size !== regions.length) return 'a region is given twice'
  const rolesAreRight = spec.members.every((member, index) => (member.role === 'primary') === (index === 0))
  return regions.length > 0 && rolesAreRight ? undefined : 'the members must be one primary followed by replicas'
}

function problemOf(spec: EngineSpec): string | undefined {
  if (!isDatabaseId(spec.databaseId)) return 'the database id is not allowed'
  if (!Number.isSafeInteger(spec.maxMemoryBytes) || spec.maxMemoryBytes <= 0) return 'maxMemoryBytes must be positive'
  if (!KEYSPACE_EVENTS.test(spec.keyspaceEvents ?? '')) return 'the keyspace events have an unknown letter'
  const settings = Object.entries(spec.settings ?? {})
  if (!settings.every(([name, value]) => SETTING_NAME.test(name) && SETTING_VALUE.test(value))) {
    return 'a setting of the engine is not allowed'
  }
  return problemOfMembers(spec) ?? spec.users.map(problemOfUser).find((problem) => problem !== undefined)
}

/**
 * Validates a desired state, so that nothing in it can escape from a path or inject into an engine file. Only our own
 * modules call this, so an invalid one is a defect: it throws a plain `Error`.
 */
export function checkSpec(spec: EngineSpec): void {
  const problem = problemOf(spec)
  if (problem) throw new Error(`engine spec of ${JSON.stringify(spec.databaseId)}: ${problem}`)
}

/**
 * Fingerprint of the settings that can change at run time. An engine with another fingerprint than desired gets the new
 * settings over its control connection.
 */
export function settingsOf(spec: EngineSpec): string {
  const users = spec.users.map((user) => [user.name, sha256Hex(user.password), user.rules])
  const observer = spec.observerPassword === undefined ? '' : sha256Hex(spec.observerPassword)
  const { maxMemoryBytes, eviction, keyspaceEvents = '', settings = {} } = spec
  return sha256Hex(JSON.stringify([users, maxMemoryBytes, eviction, keyspaceEvents, settings, observer]))
}
