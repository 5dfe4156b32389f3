/** Control characters, which could move the cursor or recolour what follows. */
const CONTROL = /\p{Cc}|\p{Cf}/gu

/** Makes text of others safe for a terminal: one line, and every control character written out. */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    return `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`
  })
}

/** Cuts text to that many characters; an ellipsis shows that something is missing. */
export function cut(text: string, most: number): string {
  const characters = [...text]
  return characters.length <= most ? text : `${characters.slice(0, Math.max(0, most - 1)).join('')}…`
}

/** How many characters wide a text is, those that a terminal shows as one counted as one. */
export const widthOf = (text: string): number => [...text].length
