import type { StoredUser } from './user.js'

/**
 * Commands that reach the engine itself, and whatever a newer engine adds to them, are taken from every user. Of the
 * category, these concern nothing but data; whoever was given them gets them back.
 */
const DATA_ONLY: Readonly<Record<string, readonly string[]>> = {
  flushall: ['keyspace', 'write', 'slow', 'dangerous'],
  flushdb: ['keyspace', 'write', 'slow', 'dangerous'],
  keys: ['keyspace', 'read', 'slow', 'dangerous'],
  monitor: ['admin', 'slow', 'dangerous'],
  restore: ['keyspace', 'write', 'slow', 'dangerous'],
  sort: ['write', 'set', 'sortedset', 'list', 'slow', 'dangerous'],
  sort_ro: ['read', 'set', 'sortedset', 'list', 'slow', 'dangerous'],
}

/**
 * The same for commands that the data plane asks in the place of a user: engines refuse them to every user, or scripts
 * could send them.
 */
const ASKED_BY_GATEWAY: Readonly<Record<string, readonly string[]>> = {
  info: ['slow', 'dangerous'],
  lastsave: ['admin', 'fast', 'dangerous'],
  latency: ['admin', 'slow', 'dangerous'],
  memory: ['slow'],
  role: ['admin', 'fast', 'dangerous'],
  slowlog: ['admin', 'slow', 'dangerous'],
}

/** What no user may send to an engine, the owner of the database included. */
export const FORBIDDEN_TO_ALL =
  '-@dangerous -move -script|debug -cluster -clusterscan -asking -readonly -readwrite ' +
  '-memory|doctor -memory|malloc-stats -memory|purge -memory|stats'

/** The rules of a user for engines. They hold even where the gateway would let something through. */
export function engineRulesOf({ keys, channels, commands }: StoredUser): string {
  const back = Object.keys(DATA_ONLY).filter((name) => grants(commands, name))
  return [...keys, ...channels, ...commands, FORBIDDEN_TO_ALL, ...back.map((name) => `+${name}`), '+client|list'].join(
    ' ',
  )
}

/** Whether the rules of a user grant a command that the data plane asks in its place, such as `MEMORY|DOCTOR`. */
export function mayAsk(commands: readonly string[], name: string): boolean {
  const [command = ''] = name.toLowerCase().split('|')
  return Object.hasOwn(ASKED_BY_GATEWAY, command) && grants(commands, command, ASKED_BY_GATEWAY[command])
}

/** Whether rules that are applied one after the other end up granting a command. */
function grants(rules: readonly string[], name: string, categoriesOf = DATA_ONLY[name] ?? []): boolean {
  const categories = ['all', ...categoriesOf]
  let granted = false
  for (const rule of rules) {
    const target = rule.slice(1)
    if (target === name || categories.some((category) => target === `@${category}`)) granted = rule.startsWith('+')
  }
  return granted
}
