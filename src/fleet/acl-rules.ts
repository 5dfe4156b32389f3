/**
 * Fits ACL rules to the engine that gets them. DesiredStates name commands as the newest engines have them; an engine refuses
 * a rule about a command that it does not know, and with it the whole file of users. Pure.
 */
import { VECTOR_READS, VECTOR_WRITES } from '../contract/databases/commands.js'

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
