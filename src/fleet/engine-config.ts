/**
 * The text of the two files that an engine starts from. Pure: what stands in a file is decided here and nowhere else.
 * The configuration holds no secret; the user file holds passwords only as SHA-256.
 */
import { sha256Hex } from '../base/index.js'
import { VECTOR_READS, VECTOR_WRITES } from '../contract/databases/commands.js'
import { CONTROL_USER, OBSERVER_RULES, OBSERVER_USER, REPLICATION_USER } from './spec.js'
import type { EngineInfo, EngineSpec, EngineUser, MemberRole, MemberSpec } from './types.js'

/** Where an engine finds and keeps its things. All absolute. */
export interface EnginePaths {
  readonly dir: string
  readonly configFile: string
  readonly userFile: string
  readonly socket: string
}

/**
 * How often an engine wakes up for its own upkeep, per second. 200 idle engines cost 17 % of a core at the engine's
 * default of 10, 8 % at 5 and 3 % at 2; but one round of expiring keys may stall commands for a quarter of the
 * interval, so 50 ms at 5 and 125 ms at 2. A clean stop by signal also waits for the next round.
 */
export const UPKEEP_PER_SECOND = 5

/**
 * The same for a primary that waits for its replicas: it notices only in such a round that a copy was handed over, and
 * then begins the next copy and the stream of changes.
 */
const UPKEEP_WHILE_COPIED_PER_SECOND = 100

/** A value as the engine's own parser of configuration lines reads it back, byte by byte. */
export function quoted(value: string): string {
  let text = '"'
  for (const byte of Buffer.from(value)) {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
    text += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
  }
  return `${text}"`
}

/** The engine's name of what happens at the bound of memory. */
export function evictionPolicy(eviction: boolean): string {
  return eviction ? 'allkeys-lru' : 'noeviction'
}

/** What an engine of ours does in another way than by itself, where clients may see or change that. */
export const OWN_DEFAULTS = [
  'latency-tracking no',
  // A script that has run for so long, in milliseconds, can be ended from outside, which the data plane then does.
  // The name is the older one of busy-reply-threshold, which every engine takes.
  'lua-time-limit 250',
  'lazyfree-lazy-eviction yes',
  'lazyfree-lazy-expire yes',
  'lazyfree-lazy-user-flush yes',
]

const COMMON = [
  'daemonize no',
  // The command line keeps naming the configuration file: that is how engines of an earlier life are found.
  'set-proc-title no',
  'port 0',
  'bind 127.0.0.1',
  'protected-mode yes',
  'unixsocketperm 700',
  'databases 1',
  // The log goes to the launcher, which keeps the last lines: nothing grows on disk.
  'logfile ""',
  'loglevel notice',
  'always-show-logo no',
  'sanitize-dump-payload yes',
  'enable-debug-command no',
  'enable-module-command no',
  'enable-protected-configs no',
  'dynamic-hz yes',
  ...OWN_DEFAULTS,
  // A replica on this machine holds no truth of its own: a stopping primary does not wait for it.
  'shutdown-timeout 0',
  'repl-diskless-sync yes',
  'repl-diskless-sync-delay 0',
  'repl-diskless-load on-empty-db',
  'rdb-del-sync-files yes',
]

function persistenceLines(persistence: EngineSpec['persistence'], role: MemberRole): readonly string[] {
  // A replica starts empty and copies its primary; files of its own would only be read to be thrown away.
  if (role === 'replica') return ['appendonly no', 'save ""']
  // A log that ends in the middle of a command is judged by us; the engine would cut it without a word.
  if (persistence === 'append-only') {
    return ['appendonly yes', 'appendfsync everysec', 'aof-load-truncated no', 'save ""']
  }
  return ['appendonly no', 'save 3600 1 300 100 60 10000']
}

const LEAST_UNREAD_BYTES = 2 ** 30
const MOST_UNREAD_BYTES = 8 * 2 ** 30

/**
 * How much of its replies a connection may leave with the engine, bytes. A pipeline of a few kilobytes can ask for any
 * amount, which the engine makes before it writes the first of it, in memory that counts for no plan.
 */
export function unreadLimit(maxMemoryBytes: number): number {
  return Math.min(Math.max(maxMemoryBytes, LEAST_UNREAD_BYTES), MOST_UNREAD_BYTES)
}

/** The settings of a spec that an engine with these settings knows, as names and values. */
export function knownSettings(spec: EngineSpec, known: EngineInfo['settings']): readonly (readonly [string, string])[] {
  return Object.entries(spec.settings ?? {}).filter(([name]) => known.has(name))
}

/** The configuration file of one member, for an engine with these settings. */
export function renderConfig(
  spec: EngineSpec,
  { region, role }: MemberSpec,
  paths: EnginePaths,
  known: EngineInfo['settings'],
): string {
  const isCopied = role === 'primary' && spec.members.length > 1
  const own = [
    `hz ${isCopied ? UPKEEP_WHILE_COPIED_PER_SECOND : UPKEEP_PER_SECOND}`,
    // Names the region in the primary's list of replicas.
    `replica-announce-ip ${region}`,
    `dir ${quoted(paths.dir)}`,
    `unixsocket ${quoted(paths.socket)}`,
    `aclfile ${quoted(paths.userFile)}`,
    `maxmemory ${spec.maxMemoryBytes}`,
    `maxmemory-policy ${evictionPolicy(spec.eviction)}`,
    `client-output-buffer-limit normal ${unreadLimit(spec.maxMemoryBytes)} 0 0`,
    `notify-keyspace-events "${spec.keyspaceEvents ?? ''}"`,
    // A line behind another one of the same setting holds.
    ...knownSettings(spec, known).map(([name, value]) => `${name} ${value === '' ? '""' : value}`),
  ]
  return `${[...COMMON, ...own, ...persistenceLines(spec.persistence, role)].join('\n')}\n`
}

/** The secrets of one life of a database's engines; never written down. */
export interface InternalSecrets {
  readonly control: string
  readonly replication: string
}

/** The rules of one user as the engine, which has these commands, takes them in a file or in `ACL SETUSER`. */
function userRules(user: EngineUser, commands: ReadonlySet<string>): readonly string[] {
  return ['on', `#${sha256Hex(user.password)}`, ...fitRules(user.rules, commands).split(' ')]
}

/** All users that an engine should have: the desired ones, the fleet's own, and `default` switched off unless desired. */
export function allUsers(
  spec: EngineSpec,
  secrets: InternalSecrets,
  commands: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const own: readonly EngineUser[] = [
    { name: CONTROL_USER, password: secrets.control, rules: '~* &* +@all' },
    { name: REPLICATION_USER, password: secrets.replication, rules: '+psync +replconf +ping' },
  ]
  const { observerPassword } = spec
  const observer =
    observerPassword === undefined ? [] : [{ name: OBSERVER_USER, password: observerPassword, rules: OBSERVER_RULES }]
  const users = new Map<string, readonly string[]>([['default', ['off', '-@all']]])
  for (const user of [...spec.users, ...own, ...observer]) users.set(user.name, userRules(user, commands))
  return users
}

/** The user file of one member. */
export function renderUsers(spec: EngineSpec, secrets: InternalSecrets, commands: ReadonlySet<string>): string {
  return [...allUsers(spec, secrets, commands)].map(([name, rules]) => `user ${name} ${rules.join(' ')}\n`).join('')
}

/**
 * The rules as the engine takes them. `commands` are the names of its commands, in upper case.
 *
 * Rules about commands that it lacks are left out. Engines count the commands of vector sets to no category and take
 * each for one that may change its key, so `@read` and `@write` get them by name, and a selector lets those who may
 * only read a key (`%R~`) read vectors in it.
 */
export function fitRules(rules: string, commands: ReadonlySet<string>): string {
  const words = rules.split(/\s+/).filter((word) => word !== '' && isKnown(word, commands))
  const reads = VECTOR_READS.filter((name) => commands.has(name))
  if (reads.length === 0) return words.join(' ')
  const writes = VECTOR_WRITES.filter((name) => commands.has(name))
  const named = words.flatMap((word) => [word, ...namesIn(word, reads, writes)])
  return [...named, ...vectorReader(named, reads)].join(' ')
}

/** Whether the engine knows the command that a rule names; rules about anything else it knows all. */
function isKnown(rule: string, commands: ReadonlySet<string>): boolean {
  return !/^[+-][^@]/.test(rule) || commands.has(rule.slice(1).toUpperCase())
}

/** What a rule about a category says about vector sets. */
function namesIn(rule: string, reads: readonly string[], writes: readonly string[]): readonly string[] {
  const category = rule.slice(1)
  const names = category === '@read' ? reads : category === '@write' ? writes : []
  return names.map((name) => `${rule[0]}${name.toLowerCase()}`)
}

/** The selector for keys that may only be read; none for a user without such keys or without the commands. */
function vectorReader(rules: readonly string[], reads: readonly string[]): readonly string[] {
  const keys = rules.filter((rule) => rule.startsWith('%R~')).map((rule) => rule.slice(2))
  const granted = reads.map((name) => `+${name.toLowerCase()}`).filter((rule) => isGranted(rules, rule))
  return keys.length === 0 || granted.length === 0 ? [] : [`(${[...keys, ...granted].join(' ')})`]
}

/** Whether rules that are applied one after the other end up granting a command; `rule` is the one that names it. */
function isGranted(rules: readonly string[], rule: string): boolean {
  const last = rules.findLast((known) => known.slice(1) === '@all' || known.slice(1) === rule.slice(1))
  return last?.startsWith('+') ?? false
}
