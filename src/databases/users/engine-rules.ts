import type { StoredUser } from './user.js'

/**
 * Commands that reach the engine itself, and whatever a newer engine adds to them, are taken from every user. Of the
 * category, these concern nothing but data; whoever was given them gets them back.
 */
const HARMLESS: Readonly<Record<string, readonly string[]>> = {
  flushall: ['keyspace', 'write', 'slow', 'dangerous'],
  flushdb: ['keyspace', 'write', 'slow', 'dangerous'],
  info: ['slow', 'dangerous'],
  keys: ['keyspace', 'read', 'slow', 'dangerous'],
  monitor: ['admin', 'slow', 'dangerous'],
  restore: ['keyspace', 'write', 'slow', 'dangerous'],
  sort: ['write', 'set', 'sortedset', 'list', 'slow', 'dangerous'],
  sort_ro: ['read', 'set', 'sortedset', 'list', 'slow', 'dangerous'],
}
const DANGEROUS = '-@dangerous -move -script|debug -cluster -clusterscan -asking -readonly -readwrite'

/** The rules of a user for engines. They hold even where the gateway would let something through. */
export function engineRulesOf({ keys, channels, commands }: StoredUser): string {
  const back = Object.keys(HARMLESS).filter((name) => grants(commands, name))
  return [...keys, ...channels, ...commands, DANGEROUS, ...back.map((name) => `+${name}`)].join(' ')
}

/** Whether rules that are applied one after the other end up granting a command. */
function grants(rules: readonly string[], name: string): boolean {
  const categories = ['all', ...(HARMLESS[name] ?? [])]
  let granted = false
  for (const rule of rules) {
    const target = rule.slice(1)
    if (target === name || categories.some((category) => target === `@${category}`)) granted = rule.startsWith('+')
  }
  return granted
}
