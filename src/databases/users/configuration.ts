import { HomeportError } from '../../contract/errors.js'
import type { DatabaseRow } from '../life.js'
import { canonicalEvents } from './keyspace-events.js'

/** The only setting that clients know (reference redis 3.6). */
const KEYSPACE_EVENTS = 'notify-keyspace-events'

/** Names and values of the settings that fit one of the patterns. */
export function configGet({ keyspace_events: events }: DatabaseRow, patterns: readonly string[]): readonly string[] {
  if (patterns.length === 0) throw wrongArity('config|get')
  const isAsked = patterns.some((pattern) => globMatches(pattern.toLowerCase(), KEYSPACE_EVENTS))
  return isAsked ? [KEYSPACE_EVENTS, events] : []
}

/** What CONFIG SET sets, and what is wrong with it: settings before a wrong one are set all the same. */
export interface ConfigSet {
  readonly events?: string
  readonly problem?: string
}

/** Reads the pairs behind CONFIG SET from left to right. */
export function configSet(args: readonly string[]): ConfigSet {
  if (args.length < 2 || args.length % 2 === 1) throw wrongArity('config|set')
  let outcome: ConfigSet = {}
  for (let at = 0; at < args.length; at += 2) {
    const [name = '', value = ''] = [args[at], args[at + 1]]
    const events = canonicalEvents(value)
    if (name.toLowerCase() !== KEYSPACE_EVENTS) return { ...outcome, problem: unknownSetting(name) }
    if (events === undefined) return { ...outcome, problem: INVALID_EVENTS }
    outcome = { events }
  }
  return outcome
}

const INVALID_EVENTS =
  `CONFIG SET failed (possibly related to argument '${KEYSPACE_EVENTS}') - ` +
  "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."

function unknownSetting(name: string): string {
  return `Unknown option or number of arguments for CONFIG SET - '${name.slice(0, 128)}'`
}

function wrongArity(command: string): HomeportError {
  const problem = `wrong number of arguments for '${command}' command`
  return new HomeportError('command_malformed', { problem })
}

/**
 * Only `*` and `?` have a meaning; that is what clients ask settings with. A star takes as little as it can, and only the
 * last one that was met is ever let take more: no pattern costs more than the product of both lengths.
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
