/**
 * Renders the two files that an engine starts from: configuration and users. Pure; nothing else decides their contents.
 * The configuration has no secret; the user file has passwords only as SHA-256. Also fits ACL rules to the commands of
 * the engine.
 */
import { sha256Hex } from '../base/index.js'
import { VECTOR_READS, VECTOR_WRITES } from '../contract/databases/commands.js'
import { CONTROL_USER, OBSERVER_RULES, OBSERVER_USER, REPLICATION_USER } from './spec.js'
import type { EngineInfo, EngineSpec, EngineUser, MemberRole, MemberSpec } from './types.js'

/** Absolute paths of the files of a member. */
export interface EnginePaths {
  readonly dir: string
  readonly configFile: string
  readonly userFile: string
  readonly socket: string
}

/**
 * `hz`, the rate of background work of an engine, per second. 200 idle engines cost 17 % of a core at the default of 10, 8
 * % at 5 and 3 % at 2; but one round of expiring keys may block commands for a quarter of the interval, 50 ms at 5 and 125
 * ms at 2. A clean stop by signal also waits for the next round. Timeouts of blocked clients would wait for it too, so the
 * gateway wakes the engine for them.
 */
export const HZ = 5

/**
 * `hz` of a primary while replicas copy it. Only in a round of background work does the primary notice that a copy is
 * complete, and start the next copy and the stream of changes.
 */
const HZ_WHILE_COPIED = 100

/** Quotes a value for the configuration parser of the engine, byte by byte. */
export function quoted(value: string): string {
  let text = '"'
  for (const byte of Buffer.from(value)) {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
    text += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
  }
  return `${text}"`
}

/** The eviction policy in engine terms. */
export function evictionPolicy(eviction: boolean): string {
  return eviction ? 'allkeys-lru' : 'noeviction'
}

/** Defaults that differ from those of the engine, where clients can see or change them. */
export const OWN_DEFAULTS = [
  'latency-tracking no',
  // After this time, milliseconds, a script can be killed from outside, which the gateway does.
  // This is the older name of busy-reply-threshold, which every engine accepts.
  'lua-time-limit 250',
  'lazyfree-lazy-eviction yes',
  'lazyfree-lazy-expire yes',
  'lazyfree-lazy-user-flush yes',
]

const COMMON = [
  'daemonize no',
  // Keeps the configuration file on the command line, by which Homeport finds leftover engines.
  'set-proc-title no',
  'port 0',
  'bind 127.0.0.1',
  'protected-mode yes',
  'unixsocketperm 700',
  'databases 1',
  // The log goes to stdout: the launcher keeps its last lines, and nothing grows on disk.
  'logfile ""',
  'loglevel notice',
  'always-show-logo no',
  'sanitize-dump-payload yes',
  'enable-debug-command no',
  'enable-module-command no',
  'enable-protected-configs no',
  'dynamic-hz yes',
  // When memory runs out, the kernel ends a child that saves before its engine. For the scores of engines see launcher.ts.
  'oom-score-adj relative',
  'oom-score-adj-values 0 0 300',
  ...OWN_DEFAULTS,
  // A stopping primary does not wait for replicas: they hold nothing of their own.
  'shutdown-timeout 0',
  'repl-diskless-sync yes',
  'repl-diskless-sync-delay 0',
  'repl-diskless-load on-empty-db',
  'rdb-del-sync-files yes',
]

function persistenceLines(persistence: EngineSpec['persistence'], role: MemberRole): readonly string[] {
  // A replica starts empty and copies its primary; it would load files of its own only to discard them.
  if (role === 'replica') return ['appendonly no', 'save ""']
  // We handle a log that ends in the middle of a command; the engine would cut it silently.
  if (persistence === 'append-only') {
    return ['appendonly yes', 'appendfsync everysec', 'aof-load-truncated no', 'save ""']
  }
  return ['appendonly no', 'save 3600 1 300 100 60 10000']
}

const MIN_UNREAD_BYTES = 2 ** 30
const MAX_UNREAD_BYTES = 8 * 2 ** 30

/**
 * Limit of unread replies per connection, bytes. A pipeline of a few kilobytes can request any amount, which the engine
 * builds before it writes the first byte, outside of any plan limit.
 */
export function unreadLimit(maxMemoryBytes: number): number {
  return Math.min(Math.max(maxMemoryBytes, MIN_UNREAD_BYTES), MAX_UNREAD_BYTES)
}

/** The settings of a spec that the engine knows, as names and values. */
export function knownSettings(spec: EngineSpec, known: EngineInfo['settings']): readonly (readonly [string, string])[] {
  return Object.entries(spec.settings ?? {}).filter(([name]) => known.has(name))
}

/** Renders the configuration file of a member, for an engine with these settings. */
export function renderConfig(
  spec: EngineSpec,
  { region, role }: MemberSpec,
  paths: EnginePaths,
  known: EngineInfo['settings'],
): string {
  const isCopied = role === 'primary' && spec.members.length > 1
  const own = [
    `hz ${isCopied ? HZ_WHILE_COPIED : HZ}`,
    // Shows the region in the list of replicas of the primary.
    `replica-announce-ip ${region}`,
    `dir ${quoted(paths.dir)}`,
    `unixsocket ${quoted(paths.socket)}`,
    `aclfile ${quoted(paths.userFile)}`,
    `maxmemory ${spec.maxMemoryBytes}`,
    `maxmemory-policy ${evictionPolicy(spec.eviction)}`,
    `client-output-buffer-limit normal ${unreadLimit(spec.maxMemoryBytes)} 0 0`,
    `notify-keyspace-events "${spec.keyspaceEvents ?? ''}"`,
    // Of two lines with one setting, the later one wins.
    ...knownSettings(spec, known).map(([name, value]) => `${name} ${value === '' ? '""' : value}`),
  ]
  return `${[...COMMON, ...own, ...persistenceLines(spec.persistence, role)].join('\n')}\n`
}

/** Passwords of the internal users; new for each supervisor, never written down. */
export interface InternalSecrets {
  readonly control: string
  readonly replication: string
}

/** ACL rules of a user for the user file or `ACL SETUSER`. */
function userRules(user: EngineUser, commands: ReadonlySet<string>): readonly string[] {
  return ['on', `#${sha256Hex(user.password)}`, ...fitRules(user.rules, commands).split(' ')]
}

/** All users of an engine: the desired ones, our own, and a disabled `default` unless it is desired. */
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

/** Renders the user file of a member. */
export function renderUsers(spec: EngineSpec, secrets: InternalSecrets, commands: ReadonlySet<string>): string {
  return [...allUsers(spec, secrets, commands)].map(([name, rules]) => `user ${name} ${rules.join(' ')}\n`).join('')
}

/**
 * Fits ACL rules to an engine. Rules name commands of the newest engines, and an engine refuses a user file with a
 * command that it does not know. Pure; `commands` are the names of its commands in upper case.
 *
 * Rules for unknown commands are dropped. Engines put the commands of vector sets in no category and treat each as a
 * possible write, so `@read` and `@write` add them by name, and a selector lets users with read-only keys (`%R~`) read
 * vectors in them.
 */
export function fitRules(rules: string, commands: ReadonlySet<string>): string {
  const words = rules.split(/\s+/).filter((word) => word !== '' && isKnown(word, commands))
  const reads = VECTOR_READS.filter((name) => commands.has(name))
  if (reads.length === 0) return words.join(' ')
  const writes = VECTOR_WRITES.filter((name) => commands.has(name))
  const named = words.flatMap((word) => [word, ...namesIn(word, reads, writes)])
  return [...named, ...vectorReader(named, reads)].join(' ')
}

/** Whether the engine knows the command of a rule; rules about anything else are always known. */
function isKnown(rule: string, commands: ReadonlySet<string>): boolean {
  return !/^[+-][^@]/.test(rule) || commands.has(rule.slice(1).toUpperCase())
}

/** The rules for vector commands that a category rule implies. */
function namesIn(rule: string, reads: readonly string[], writes: readonly string[]): readonly string[] {
  const category = rule.slice(1)
  const names = category === '@read' ? reads : category === '@write' ? writes : []
  return names.map((name) => `${rule[0]}${name.toLowerCase()}`)
}

/** The selector for read-only keys; none without such keys or without the commands. */
function vectorReader(rules: readonly string[], reads: readonly string[]): readonly string[] {
  const keys = rules.filter((rule) => rule.startsWith('%R~')).map((rule) => rule.slice(2))
  const granted = reads.map((name) => `+${name.toLowerCase()}`).filter((rule) => isGranted(rules, rule))
  return keys.length === 0 || granted.length === 0 ? [] : [`(${[...keys, ...granted].join(' ')})`]
}

/** Whether rules applied in order grant a command; `rule` is the rule that names it. */
function isGranted(rules: readonly string[], rule: string): boolean {
  const last = rules.findLast((known) => known.slice(1) === '@all' || known.slice(1) === rule.slice(1))
  return last?.startsWith('+') ?? false
}
