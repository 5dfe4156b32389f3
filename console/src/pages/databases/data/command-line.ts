/** The command prompt: parses a line like `redis-cli`, suggests commands, and recognizes destructive ones. */
import { type AllowedCommand, COMMANDS } from '../../../../../src/contract/databases/commands.js'

/** A parsed line: its words, or the error. */
export type ParsedLine =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'broken'; readonly problem: string }

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\u0007' }
const WORD = /\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\'|[^'])*)'|([^\s"']+))(?=\s|$)/y

/** Splits a line into words. Quotes keep spaces, and double quotes support `\n`, `\"` and `\x41`. */
export function parseLine(line: string): ParsedLine {
  const words: string[] = []
  WORD.lastIndex = 0
  while (WORD.lastIndex < line.trimEnd().length) {
    const at = WORD.lastIndex
    const match = WORD.exec(line)
    if (!match) return { kind: 'broken', problem: `The quotes are not closed: ${line.slice(at).trim().slice(0, 40)}` }
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

/** The supported commands, without containers such as `CONFIG` that need a subcommand. */
const OFFERED = COMMANDS.filter(isOffered)
  .filter(({ state }) => state !== 'container')
  .map(({ name }) => name.replace('|', ' '))
  .sort()

/** Commands that start with the line, while the command is being typed. */
export function suggestionsFor(line: string, most = 8): string[] {
  const typed = line.trimStart().toUpperCase()
  if (typed === '') return []
  return OFFERED.filter((name) => name.startsWith(typed) && name !== typed).slice(0, most)
}

/** Commands that delete data for good, by their first one or two words. */
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

/** Whether a command needs a confirmation. */
export function isDestructive(words: readonly string[]): boolean {
  const [first = '', second = ''] = words.map((word) => word.toUpperCase())
  return DESTRUCTIVE.has(first) || DESTRUCTIVE.has(`${first} ${second}`)
}
