import type { Argument } from '../resp/encode.js'

const NAMED: ReadonlyMap<number, string> = new Map([
  [0x07, '\\a'],
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0d, '\\r'],
  [0x22, '\\"'],
  [0x5c, '\\\\'],
])

/** The words of a command as in a line of MONITOR, up to about `maxCharacters`. */
export function commandText(words: Iterable<Argument>, maxCharacters: number): string {
  let text = ''
  for (const word of words) {
    if (text.length >= maxCharacters) break
    text += `${text === '' ? '' : ' '}${quoted(word, maxCharacters)}`
  }
  return text
}

function quoted(word: Argument, maxCharacters: number): string {
  const bytes = typeof word === 'string' ? Buffer.from(word.slice(0, maxCharacters)) : word
  let text = '"'
  for (let at = 0; at < bytes.length && text.length < maxCharacters; at++) text += shown(bytes[at] ?? 0)
  return `${text}"`
}

function shown(byte: number): string {
  const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
  if (isPlain) return String.fromCharCode(byte)
  return NAMED.get(byte) ?? `\\x${byte.toString(16).padStart(2, '0')}`
}
