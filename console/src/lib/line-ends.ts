/** The line ends of a text that a text area edits: whatever they were, what it gives back has only line feeds. */

/** The line ends of a text; `mixed`: a text area would change some of them for good. */
export function lineEndsOf(text: string): '\n' | '\r\n' | 'mixed' {
  if (!text.includes('\r')) return '\n'
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? 'mixed' : '\r\n'
}

/** The edited text with the line ends that it had before. */
export const withLineEndsOf = (before: string, edited: string): string =>
  lineEndsOf(before) === '\r\n' ? edited.replace(/\r?\n/g, '\r\n') : edited
