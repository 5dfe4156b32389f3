/** Control characters, which could move the cursor or change colours. */
const CONTROL = /\p{Cc}|\p{Cf}/gu

/** Makes foreign text safe for a terminal: one line, with control characters escaped. */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    return `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`
  })
}
