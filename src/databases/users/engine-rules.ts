import type { StoredUser } from './user.js'

/**
 * Commands of `@dangerous` that only touch data, with their categories. `FORBIDDEN_TO_ALL` takes the whole category from
 * every user, including commands that a newer engine adds to it. Users whose rules grant these commands get them back.
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
 * Commands that the data plane sends to the engine on behalf of a user, with their categories. The engine itself refuses
 * them to every user, because otherwise scripts could send them.
 */
const SENT_BY_GATEWAY: Readonly<Record<string, readonly string[]>> = {
  info: ['slow', 'dangerous'],
  lastsave: ['admin', 'fast', 'dangerous'],
  latency: ['admin', 'slow', 'dangerous'],
  memory: ['slow'],
  role: ['admin', 'fast', 'dangerous'],
  slowlog: ['admin', 'slow', 'dangerous'],
}

/** Commands that no user may send to an engine, not even the owner of the database. */
export const FORBIDDEN_TO_ALL =
  '-@dangerous -move -script|debug -cluster -clusterscan -asking -readonly -readwrite ' +
  '-memory|doctor -memory|malloc-stats -memory|purge -memory|stats'

/** The ACL rules of a user for engines: the second line of defence behind the gateway. */
export function engineRulesOf({ keys, channels, commands }: StoredUser): string {
  const granted = Object.keys(DATA_ONLY).filter((name) => grants(commands, name))
  return [
    ...keys,
    ...channels,
    ...commands,
    FORBIDDEN_TO_ALL,
    ...granted.map((name) => `+${name}`),
    '+client|list',
  ].join(' ')
}

/** Whether the rules of a user grant a command that the data plane sends on its behalf, such as `MEMORY|DOCTOR`. */
export function mayObserve(commands: readonly string[], name: string): boolean {
  const [command = ''] = name.toLowerCase().split('|')
  return Object.hasOwn(SENT_BY_GATEWAY, command) && grants(commands, command, SENT_BY_GATEWAY[command])
}

/** Whether rules, applied in order, grant a command. */
function grants(rules: readonly string[], name: string, categoriesOf = DATA_ONLY[name] ?? []): boolean {
  const categories = ['all', ...categoriesOf]
  let granted = false
  for (const rule of rules) {
    const target = rule.slice(1)
    if (target === name || categories.some((category) => target === `@${category}`)) granted = rule.startsWith('+')
  }
  return granted
}
