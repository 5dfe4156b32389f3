import { HomeportError } from '../../contract/errors/errors.js'
import type { DatabaseRow } from '../lifecycle.js'
import {
  effectiveSettings,
  parseValue,
  readSettings,
  SETTING_NAMES,
  type SettingBounds,
  type StoredSettings,
  settingOf,
  writeSettings,
} from './settings.js'

/** What the settings of one database depend on. */
export interface SettingFacts extends SettingBounds {
  /** Default values of the engine's settings. A setting that the engine lacks is not in it. */
  readonly defaults: ReadonlyMap<string, string>
  readonly maxClients: number
}

/** Limits the work of CONFIG GET, which matches every pattern against every name. */
const MAX_PATTERNS = 64
const TOO_MANY_PATTERNS = `CONFIG GET takes at most ${MAX_PATTERNS} different patterns`
/** No valid name or value is longer. */
const MAX_TEXT_LENGTH = 128
const KEYSPACE_EVENTS = 'notify-keyspace-events'

/** The settings that match one of the patterns (reference redis 3.6). */
export function configGet(
  row: DatabaseRow,
  facts: SettingFacts,
  patterns: readonly string[],
): ReadonlyMap<string, string> {
  if (patterns.length === 0) throw wrongArity('config|get')
  const globs = [...new Set(patterns)]
    .filter(({ length }) => length <= MAX_TEXT_LENGTH)
    .map((text) => text.toLowerCase())
  if (globs.length > MAX_PATTERNS) throw new HomeportError('command_malformed', { problem: TOO_MANY_PATTERNS })
  const isMatch = (name: string): boolean => globs.some((pattern) => globMatches(pattern, name))
  return new Map([...valuesOf(row, facts)].filter(([name]) => isMatch(name)))
}

/** What CONFIG SET changes, and its first problem. Settings before the invalid one are set nevertheless, as in Redis. */
export interface ConfigSet {
  readonly set: Partial<Pick<DatabaseRow, 'keyspace_events' | 'engine_settings'>>
  /** The names and values that were set. */
  readonly changed: Readonly<Record<string, string>>
  readonly problem?: string
}

/** Evaluates the name-value pairs of CONFIG SET from left to right. */
export function configSet(row: DatabaseRow, facts: SettingFacts, args: readonly string[]): ConfigSet {
  if (args.length < 2 || args.length % 2 === 1) throw wrongArity('config|set')
  let events: string | undefined
  const stored = readSettings(row)
  let settings = stored
  const changed: Record<string, string> = {}
  const done = (problem?: string): ConfigSet => ({
    set: {
      ...(events === undefined ? {} : { keyspace_events: events }),
      ...(settings === stored ? {} : { engine_settings: writeSettings(settings) }),
    },
    changed,
    ...(problem === undefined ? {} : { problem }),
  })
  const seen = new Set<string>()
  for (let at = 0; at < args.length; at += 2) {
    const [given = '', value = ''] = [args[at], args[at + 1]]
    const name = given.slice(0, MAX_TEXT_LENGTH).toLowerCase()
    const canonical = settingOf(name) ?? name
    if (seen.has(canonical)) return done(failed(name, 'duplicate parameter'))
    seen.add(canonical)
    if (value.length > MAX_TEXT_LENGTH) return done(failed(name, 'argument is too long'))
    if (name === KEYSPACE_EVENTS) {
      events = canonicalEvents(value)
      if (events === undefined) return done(failed(name, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."))
      changed[name] = events
      continue
    }
    const outcome = setOne(row, facts, settings, { given, name, value })
    if ('problem' in outcome) return done(outcome.problem)
    if (outcome.settings !== settings) changed[canonical] = outcome.settings[canonical] ?? ''
    settings = outcome.settings
  }
  return done()
}

function setOne(
  row: DatabaseRow,
  facts: SettingFacts,
  settings: StoredSettings,
  { given, name, value }: { readonly given: string; readonly name: string; readonly value: string },
): { readonly settings: StoredSettings } | { readonly problem: string } {
  const setting = settingOf(name)
  if (setting === undefined || !facts.defaults.has(name)) {
    const present = valuesOf(row, facts).get(name)
    // Setting a protected setting to its current value is no change.
    if (present !== undefined && sameValue(present, value)) return { settings }
    return { problem: present === undefined ? unknownSetting(given) : failed(name, "can't set protected config") }
  }
  const parsed = parseValue(setting, value, facts)
  if ('problem' in parsed) return { problem: failed(name, parsed.problem) }
  return { settings: { ...settings, [setting]: parsed.value } }
}

/** The settings that clients may see, by all their names. */
function valuesOf(row: DatabaseRow, facts: SettingFacts): ReadonlyMap<string, string> {
  const stored = effectiveSettings(readSettings(row), facts)
  const policy = facts.eviction ? 'allkeys-lru' : 'noeviction'
  const own: Readonly<Record<string, string>> = { 'maxmemory-policy': policy, maxmemory: String(facts.maxMemoryBytes) }
  const defaultOf = (name: string): string | undefined => own[name] ?? facts.defaults.get(name)
  const changeable = SETTING_NAMES.filter((name) => facts.defaults.has(name)).map((name): [string, string] => [
    name,
    stored[settingOf(name) ?? name] ?? defaultOf(name) ?? '',
  ])
  const isLogged = row.persistence === 'append-only'
  return new Map([
    ...changeable,
    [KEYSPACE_EVENTS, row.keyspace_events],
    ['appendfsync', 'everysec'],
    ['appendonly', isLogged ? 'yes' : 'no'],
    ['databases', '1'],
    ['maxclients', String(facts.maxClients)],
    ['save', isLogged ? '' : '3600 1 300 100 60 10000'],
    ['timeout', '0'],
  ])
}

function sameValue(present: string, given: string): boolean {
  return present.toLowerCase() === given.trim().toLowerCase()
}

function failed(name: string, reason: string): string {
  return `CONFIG SET failed (possibly related to argument '${name}') - ${reason}`
}

function unknownSetting(name: string): string {
  return `Unknown option or number of arguments for CONFIG SET - '${name.slice(0, 128)}'`
}

function wrongArity(command: string): HomeportError {
  const problem = `wrong number of arguments for '${command}' command`
  return new HomeportError('command_malformed', { problem })
}

/**
 * Matches `*` and `?`, the only wildcards that clients use here. On a mismatch only the last star is extended, so the cost
 * is at most the product of both lengths.
 */
function globMatches(pattern: string, text: string): boolean {
  let [at, star, starEnd] = [0, -1, 0]
  for (let read = 0; read < text.length; ) {
    if (pattern[at] === '*') {
      star = at++
      starEnd = read
    } else if (pattern[at] === '?' || pattern[at] === text[read]) {
      at++
      read++
    } else {
      if (star < 0) return false
      at = star + 1
      read = ++starEnd
    }
  }
  while (pattern[at] === '*') at++
  return at === pattern.length
}

/** The letters for classes of events, in the order in which CONFIG GET shows them. */
const CLASSES = 'g$lshzxetd'
const OTHERS = 'KEmn'

/**
 * The letters of `notify-keyspace-events` in the order of CONFIG GET (reference redis 3.6); undefined when one of them is
 * invalid.
 */
export function canonicalEvents(letters: string): string | undefined {
  const given = new Set([...new Set(letters)].flatMap((letter) => (letter === 'A' ? [...CLASSES] : [letter])))
  if ([...given].some((letter) => !CLASSES.includes(letter) && !OTHERS.includes(letter))) return undefined
  const classes = [...CLASSES].filter((letter) => given.has(letter)).join('')
  const others = [...OTHERS].filter((letter) => given.has(letter)).join('')
  return (classes === CLASSES ? 'A' : classes) + others
}
