/**
 * The engine settings that clients of a database may change: those that affect only this database. Each has bounds that
 * every supported engine accepts, because an engine does not start with an invalid stored value.
 */

/** The kind of values that a setting takes. */
type Values =
  | { readonly kind: 'integer'; readonly least: number; readonly most: number }
  /** Bytes, also written as `4kb`. */
  | { readonly kind: 'memory'; readonly most: number }
  | { readonly kind: 'yes-or-no' }
  | { readonly kind: 'percentiles' }
  /** Bytes up to the plan's limit; 0 means that limit. */
  | { readonly kind: 'data-bound' }
  /** The eviction policy: any with eviction on; only `noeviction` with eviction off. */
  | { readonly kind: 'policy' }
  /** Milliseconds that a script may run before other clients get BUSY; at most the plan's script timeout. */
  | { readonly kind: 'script-time' }

/** What the bounds of settings depend on. */
export interface SettingBounds {
  readonly eviction: boolean
  /** The plan's script timeout, milliseconds. */
  readonly scriptTimeoutMs: number
  /** The plan's limit of the data set, bytes. */
  readonly maxMemoryBytes: number
}

const MAX_INT32 = 2 ** 31 - 1
const MIB = 2 ** 20
const integer = (least: number, most: number): Values => ({ kind: 'integer', least, most })
const count = integer(0, MAX_INT32)
const yesOrNo: Values = { kind: 'yes-or-no' }

const SETTINGS: Readonly<Record<string, Values>> = {
  'busy-reply-threshold': { kind: 'script-time' },
  'hash-max-listpack-entries': count,
  'hash-max-listpack-value': { kind: 'memory', most: MAX_INT32 },
  'hll-sparse-max-bytes': { kind: 'memory', most: MIB },
  'latency-monitor-threshold': count,
  'latency-tracking': yesOrNo,
  'latency-tracking-info-percentiles': { kind: 'percentiles' },
  'lazyfree-lazy-eviction': yesOrNo,
  'lazyfree-lazy-expire': yesOrNo,
  'lazyfree-lazy-server-del': yesOrNo,
  'lazyfree-lazy-user-del': yesOrNo,
  'lazyfree-lazy-user-flush': yesOrNo,
  'lfu-decay-time': count,
  'lfu-log-factor': count,
  'list-compress-depth': integer(0, 65_535),
  'list-max-listpack-size': integer(-5, 32_767),
  maxmemory: { kind: 'data-bound' },
  'maxmemory-policy': { kind: 'policy' },
  'min-replicas-max-lag': integer(0, 3_600),
  'min-replicas-to-write': integer(0, 100),
  'set-max-intset-entries': count,
  'set-max-listpack-entries': count,
  'set-max-listpack-value': { kind: 'memory', most: MAX_INT32 },
  'slowlog-log-slower-than': integer(-1, Number.MAX_SAFE_INTEGER),
  // Each entry takes up to 4 KiB. Engines check the memory limit on writes only, so reads alone could exceed it.
  'slowlog-max-len': integer(0, 10_000),
  'stream-node-max-bytes': { kind: 'memory', most: 1024 * MIB },
  'stream-node-max-entries': count,
  // Without a bound, reads of missing keys would use unbounded memory.
  'tracking-table-max-keys': integer(1, 1_000_000),
  'zset-max-listpack-entries': count,
  'zset-max-listpack-value': { kind: 'memory', most: MAX_INT32 },
}

/** Older names that engines still accept. */
const ALIASES: Readonly<Record<string, string>> = {
  'hash-max-ziplist-entries': 'hash-max-listpack-entries',
  'hash-max-ziplist-value': 'hash-max-listpack-value',
  'list-max-ziplist-size': 'list-max-listpack-size',
  'lua-time-limit': 'busy-reply-threshold',
  'min-slaves-max-lag': 'min-replicas-max-lag',
  'min-slaves-to-write': 'min-replicas-to-write',
  'zset-max-ziplist-entries': 'zset-max-listpack-entries',
  'zset-max-ziplist-value': 'zset-max-listpack-value',
}

const POLICIES = [
  'volatile-lru',
  'volatile-lfu',
  'volatile-random',
  'volatile-ttl',
  'allkeys-lru',
  'allkeys-lfu',
  'allkeys-random',
  'noeviction',
]
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1e3,
  kb: 2 ** 10,
  m: 1e6,
  mb: MIB,
  g: 1e9,
  gb: 2 ** 30,
}
const DIGITS = /^-?(?:0|[1-9]\d{0,15})$/
const MEMORY = /^(\d{1,15})(b|kb?|mb?|gb?|)$/i
const PERCENTILE = /^(?:100|\d{1,2})(?:\.\d{1,6})?$/
const MAX_PERCENTILES = 16

/** Values that mean "as the plan says". */
const UNBOUND: Readonly<Record<string, string>> = { maxmemory: '0' }

/** All names of all settings, including old ones. */
export const SETTING_NAMES: readonly string[] = [...Object.keys(SETTINGS), ...Object.keys(ALIASES)].sort()

/** The name under which a setting is stored; undefined when clients may not change it. */
export function settingOf(name: string): string | undefined {
  const known = Object.hasOwn(ALIASES, name) ? ALIASES[name] : name
  return known !== undefined && Object.hasOwn(SETTINGS, known) ? known : undefined
}

/** A value as it is stored and shown, or its problem in the engine's words. */
export type ParsedValue = { readonly value: string } | { readonly problem: string }

/** Validates a value. `setting` is the name under which it is stored. */
export function parseValue(setting: string, given: string, bounds: SettingBounds): ParsedValue {
  const values = SETTINGS[setting]
  switch (values?.kind) {
    case 'integer':
      return parseInteger(given, values.least, values.most)
    case 'script-time':
      return parseInteger(given, 1, Math.max(1, Math.min(bounds.scriptTimeoutMs, MAX_INT32)))
    case 'memory':
      return parseMemory(given, values.most)
    case 'data-bound':
      return parseMemory(given, bounds.maxMemoryBytes)
    case 'yes-or-no':
      return /^(?:yes|no)$/i.test(given)
        ? { value: given.toLowerCase() }
        : { problem: "argument must be 'yes' or 'no'" }
    case 'percentiles':
      return parsePercentiles(given)
    case 'policy':
      return parsePolicy(given.toLowerCase(), bounds)
    case undefined:
      return { problem: 'it cannot be changed' }
  }
}

function parseInteger(given: string, least: number, most: number): ParsedValue {
  const value = Number(given)
  if (!DIGITS.test(given) || !Number.isSafeInteger(value)) {
    return { problem: "argument couldn't be parsed into an integer" }
  }
  if (value < least || value > most) {
    return { problem: `argument must be between ${least} and ${most} inclusive` }
  }
  return { value: String(value) }
}

function parseMemory(given: string, most: number): ParsedValue {
  const [, digits = '', unit = ''] = MEMORY.exec(given) ?? []
  const value = Number(digits) * (UNITS[unit.toLowerCase()] ?? 1)
  if (digits === '') return { problem: 'argument must be a memory value' }
  if (value > most) return { problem: `argument must be between 0 and ${most} inclusive` }
  return { value: String(value) }
}

function parsePercentiles(given: string): ParsedValue {
  const texts = given.split(/\s+/).filter((text) => text !== '')
  if (texts.length > MAX_PERCENTILES || texts.some((text) => !PERCENTILE.test(text) || Number(text) > 100)) {
    return { problem: 'latency-tracking-info-percentiles should contain numbers between 0.0 and 100.0' }
  }
  return { value: texts.map(Number).join(' ') }
}

function parsePolicy(given: string, { eviction }: SettingBounds): ParsedValue {
  if (!POLICIES.includes(given)) return { problem: `argument(s) must be one of the following: ${POLICIES.join(', ')}` }
  if (eviction || given === 'noeviction') return { value: given }
  return { problem: 'eviction is off for this database: turn it on first' }
}

/** The settings that clients have changed, by the names under which they are stored. */
export type StoredSettings = Readonly<Record<string, string>>

/** Reads the settings of a stored database. @throws Error when they are unreadable. */
export function readSettings(row: { readonly database_id: string; readonly engine_settings: string }): StoredSettings {
  if (row.engine_settings === '{}') return NOTHING
  const stored: unknown = JSON.parse(row.engine_settings)
  if (isSettings(stored)) return stored
  throw new Error(`database ${row.database_id} has unreadable settings`)
}

const NOTHING: StoredSettings = {}

function isSettings(stored: unknown): stored is StoredSettings {
  return (
    typeof stored === 'object' && stored !== null && Object.values(stored).every((value) => typeof value === 'string')
  )
}

/** Settings as they are stored. */
export function writeSettings(settings: StoredSettings): string {
  return JSON.stringify(Object.fromEntries(Object.entries(settings).sort()))
}

/**
 * The stored settings that apply now. A setting that the plan or the eviction of a database no longer allows stays stored,
 * and applies again once it is allowed.
 */
export function effectiveSettings(stored: StoredSettings, bounds: SettingBounds): StoredSettings {
  return Object.fromEntries(
    Object.entries(stored).filter(
      ([name, value]) =>
        settingOf(name) === name && value !== UNBOUND[name] && 'value' in parseValue(name, value, bounds),
    ),
  )
}
