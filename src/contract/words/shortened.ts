import { whole } from './figures.js'

/** Longest text of an error, and of a field of the log, characters. */
export const MAX_TEXT_LENGTH = 4_000
/** Share of a shortened text that is its beginning. The end of an error says what to do. */
const SHARE_OF_BEGINNING = 3 / 4

/**
 * Shortens a text that may repeat what a client has sent: `begins [12,345 characters left out] ends`.
 * @param most characters of the text that are kept
 */
export function shortened(text: string, most = MAX_TEXT_LENGTH): string {
  if (text.length <= most) return text
  const beginning = Math.floor(most * SHARE_OF_BEGINNING)
  const end = text.length - (most - beginning)
  return `${text.slice(0, beginning)} [${whole(end - beginning)} characters left out] ${text.slice(end)}`
}
