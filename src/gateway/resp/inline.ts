/** Escapes inside double quotes, by the letter after the backslash. */
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' }
const WORD = /\s*(?:"((?:[^"\\]|\\[\s\S])*)"|'((?:[^'\\]|\\[\s\S])*)'|([^\s"']+))(?=\s|$)/y
const ESCAPED = /\\(?:x([0-9a-fA-F]{2})|([\s\S]))/g

/**
 * Splits a line typed by hand into words, as the engine does: double quotes know `\n`, `\xff` and so on, single
 * quotes only `\'`. Bytes travel as latin1 characters so that none is changed.
 * @returns `undefined` when the quotes do not balance.
 */
export function splitInline(line: string): readonly Buffer[] | undefined {
  const words: Buffer[] = []
  let at = 0
  while (line.slice(at).trim() !== '') {
    WORD.lastIndex = at
    const match = WORD.exec(line)
    if (!match) return undefined
    words.push(Buffer.from(wordOf(match), 'latin1'))
    at = WORD.lastIndex
  }
  return words
}

function wordOf([, doubleQuoted, singleQuoted, bare]: RegExpExecArray): string {
  if (doubleQuoted !== undefined) {
    return doubleQuoted.replace(ESCAPED, (_, hex: string | undefined, letter: string) =>
      hex === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
    )
  }
  if (singleQuoted !== undefined) return singleQuoted.replaceAll("\\'", "'")
  return bare ?? ''
}
