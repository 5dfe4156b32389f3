/** The line ends of a text that a text area edits. A text area returns only line feeds, whatever the text had. */

/** The line ends of a text. `mixed`: several kinds, or lone carriage returns, which cannot be restored after an edit. */
export function lineEndsOf(text: string): '\n' | '\r\n' | 'mixed' {
  if (!text.includes('\r')) return '\n'
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? 'mixed' : '\r\n'
}

/** The edited text with the line ends that it had before. */
export const withLineEndsOf = (before: string, edited: string): string =>
  lineEndsOf(before) === '\r\n' ? edited.replace(/\r?\n/g, '\r\n') : edited
