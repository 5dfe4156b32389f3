/** The command box: reading a line the way `redis-cli` does, suggesting commands, and telling which ones destroy. */
import { type AllowedCommand, COMMANDS } from '../../../../../src/contract/databases/commands.js'

/** A line read: its words, or what is wrong with it. */
export type ParsedLine =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'broken'; readonly problem: string }

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\u0007' }
const WORD = /\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\'|[^'])*)'|([^\s"']+))(?=\s|$)/y

/** Splits a line into words; quotes hold spaces, and in double ones `\n`, `\"` and `\x41` mean what they do in a shell. */
export function parseLine(line: string): ParsedLine {
  const words: string[] = []
  WORD.lastIndex = 0
  while (WORD.lastIndex < line.trimEnd().length) {
    const at = WORD.lastIndex
    const match = WORD.exec(line)
    if (!match) return { kind: 'broken', problem: `The quotes do not close: ${line.slice(at).trim().slice(0, 40)}` }
    const [, double, single, plain] = match
    words.push(double === undefined ? (single?.replaceAll("\\'", "'") ?? plain ?? '') : unescaped(double))
  }
  return { kind: 'words', words }
}

function unescaped(text: string): string {
  return text.replace(/\\(?:x([0-9a-fA-F]{2})|(.))/g, (_whole, hex: string | undefined, character: string) =>
    hex === undefined ? (ESCAPES[character] ?? character) : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

const isOffered = (command: (typeof COMMANDS)[number]): command is AllowedCommand => command.allowed && command.rest

/** The commands that can be sent from here, without the containers that mean nothing by themselves. */
const OFFERED = COMMANDS.filter(isOffered)
  .filter(({ state }) => state !== 'container')
  .map(({ name }) => name.replace('|', ' '))
  .sort()

/** Commands that begin like the line, while it is still about the command. */
export function suggestionsFor(line: string, most = 8): string[] {
  const typed = line.trimStart().toUpperCase()
  if (typed === '') return []
  return OFFERED.filter((name) => name.startsWith(typed) && name !== typed).slice(0, most)
}

/** Commands that destroy what cannot be brought back, by their first word or two. */
const DESTRUCTIVE = new Set([
  ...['FLUSHALL', 'FLUSHDB', 'DEL', 'UNLINK', 'GETDEL', 'RENAME', 'JSON.DEL', 'JSON.CLEAR', 'HDEL', 'SREM', 'ZREM'],
  ...['XDEL', 'XTRIM', 'LTRIM', 'ZREMRANGEBYLEX', 'ZREMRANGEBYRANK', 'ZREMRANGEBYSCORE', 'RESTORE'],
  ...[
    'FUNCTION FLUSH',
    'FUNCTION DELETE',
    'SCRIPT FLUSH',
    'ACL DELUSER',
    'ACL SETUSER',
    'XGROUP DESTROY',
    'CONFIG SET',
  ],
])

/** Whether a command asks before it is sent. */
export function isDestructive(words: readonly string[]): boolean {
  const [first = '', second = ''] = words.map((word) => word.toUpperCase())
  return DESTRUCTIVE.has(first) || DESTRUCTIVE.has(`${first} ${second}`)
}
