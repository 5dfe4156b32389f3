import { COMMANDS, enginesWith } from '../../contract/databases/commands.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { NO_PERMISSIONS, openToken, type StoredUser } from './user.js'

/** What a rule depends on besides the user. */
export interface RuleContext {
  /** The secret that signs the tokens of this database. */
  readonly key: string
  /** Whether the engine has a command that not every supported engine has; the name is in upper case. */
  readonly hasNewer: (name: string) => boolean
}

const CATEGORIES: ReadonlySet<string> = new Set(
  (
    'admin all bitmap blocking connection dangerous fast geo hash hyperloglog keyspace list pubsub read scripting set ' +
    'slow sortedset stream string transaction write'
  ).split(' '),
)
const COMMAND_NAMES: ReadonlySet<string> = new Set(
  COMMANDS.map(({ name }) => name).filter((name) => !name.includes('|')),
)
/** Printable ASCII without spaces, which separate rules in the engine's ACL file. */
const PATTERN = /^[\x21-\x7e]{0,1024}$/
const MAX_PATTERNS_LENGTH = 16 * 1024
/** Rules of one SETUSER. Bounded because each rule is compared with all earlier ones. */
const MAX_RULES = 1_000
/** Passwords of one user. Bounded because a login compares all of them. */
const MAX_PASSWORDS = 64

/** Applies the rules of one SETUSER in order. @throws HomeportError in the engine's wording where it has one. */
export function applyRules(user: StoredUser, rules: readonly string[], on: RuleContext): StoredUser {
  if (rules.length > MAX_RULES) throw refusal('', `it takes at most ${MAX_RULES} rules at a time`)
  const changed = rules.reduce((current, rule) => applyRule(current, rule, on), user)
  const length = [...changed.keys, ...changed.channels].join(' ').length
  if (length > MAX_PATTERNS_LENGTH) {
    throw refusal('~', `the patterns of a user may have ${MAX_PATTERNS_LENGTH} characters together`)
  }
  if (changed.passwords.length > MAX_PASSWORDS) throw refusal('>', `a user has at most ${MAX_PASSWORDS} passwords`)
  return changed
}

function applyRule(user: StoredUser, rule: string, on: RuleContext): StoredUser {
  switch (rule.toLowerCase()) {
    case 'on':
    case 'off':
      return { ...user, status: rule.toLowerCase() === 'on' ? 'on' : 'off' }
    case 'reset':
      return { ...user, ...NO_PERMISSIONS }
    case 'resetpass':
      return { ...user, passwords: [] }
    case 'resetkeys':
      return { ...user, keys: [] }
    case 'resetchannels':
      return { ...user, channels: [] }
    case 'allkeys':
      return applyRule(user, '~*', on)
    case 'allchannels':
      return applyRule(user, '&*', on)
    case 'allcommands':
      return applyRule(user, '+@all', on)
    case 'nocommands':
      return applyRule(user, '-@all', on)
    case 'sanitize-payload':
      return user
    default:
      return applyPrefixed(user, rule, on)
  }
}

function applyPrefixed(user: StoredUser, rule: string, on: RuleContext): StoredUser {
  switch (rule[0]) {
    case '~':
    case '%':
      return { ...user, keys: withPattern(user.keys, keyPattern(rule), '~*') }
    case '&':
      return { ...user, channels: withPattern(user.channels, channelPattern(rule), '&*') }
    case '+':
    case '-':
      return { ...user, commands: withCommand(user.commands, rule.toLowerCase(), on) }
    case '>':
    case '<':
      return { ...user, passwords: withPassword(user, rule, on) }
    case '#':
    case '!':
      throw refusal(rule[0], TOKEN_REQUIRED)
    case '(':
      throw refusal('(', 'selectors are not available')
    default:
      throw refusal(rule, rule.toLowerCase() === 'nopass' ? TOKEN_REQUIRED : 'Syntax error')
  }
}

const TOKEN_REQUIRED = 'create a token with ACL GENTOKEN <user> [password] and set it with ><token>'

function keyPattern(rule: string): string {
  const [, access, pattern] = /^(?:~|%(R|W|RW|WR)~)(.*)$/is.exec(rule) ?? []
  if (pattern === undefined || !isPattern(pattern)) throw refusal(rule, 'Syntax error')
  const reads = access?.toUpperCase()
  return reads === 'R' || reads === 'W' ? `%${reads}~${pattern}` : `~${pattern}`
}

function channelPattern(rule: string): string {
  if (!isPattern(rule.slice(1))) throw refusal(rule, 'Syntax error')
  return rule
}

const isPattern = (pattern: string): boolean => PATTERN.test(pattern) && !/[()]/.test(pattern)

function withPattern(patterns: readonly string[], pattern: string, everything: string): string[] {
  if (pattern === everything) return [everything]
  if (!patterns.includes(everything)) return [...patterns.filter((known) => known !== pattern), pattern]
  throw refusal(
    pattern,
    `Adding a pattern after the * pattern does not have any effect. Try '${everything === '~*' ? 'resetkeys' : 'resetchannels'}' to start with an empty list of patterns`,
  )
}

/** Appends a rule and drops earlier rules for the same command or category, which it overrides. */
function withCommand(rules: readonly string[], rule: string, on: RuleContext): string[] {
  if (rule === '+@all' || rule === '-@all') return [rule]
  const target = rule.slice(1)
  if (target.includes('|')) throw refusal(rule, 'rules for subcommands are not available')
  const isKnown = target.startsWith('@') ? CATEGORIES.has(target.slice(1)) : isCommand(target.toUpperCase(), rule, on)
  if (!isKnown) throw refusal(rule, 'Unknown command or category name in ACL')
  return [...rules.filter((known) => known.slice(1) !== target), rule]
}

function isCommand(name: string, rule: string, on: RuleContext): boolean {
  const engines = enginesWith(name)
  if (engines !== undefined && !on.hasNewer(name)) {
    throw refusal(rule, `the engine of this database does not have the command: ${engines}`)
  }
  return COMMAND_NAMES.has(name)
}

function withPassword(user: StoredUser, rule: string, on: RuleContext): StoredUser['passwords'] {
  const stored = openToken(user.name, rule.slice(1), on.key)
  // The text may be a password, so the error does not repeat it.
  if (!stored) throw refusal(rule.slice(0, 1), TOKEN_REQUIRED)
  const others = user.passwords.filter(({ password }) => password !== stored.password)
  return rule.startsWith('>') ? [...others, stored] : others
}

function refusal(rule: string, reason: string): HomeportError {
  const problem = `Error in ACL SETUSER modifier '${rule.slice(0, 128)}': ${reason}`
  return new HomeportError('command_malformed', { problem })
}
