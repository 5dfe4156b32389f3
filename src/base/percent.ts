/** A text with its percent-encoding decoded; the text itself if that is malformed. */
export function decodedOrSame(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * The source of a pattern that matches a name in a query, whichever of its characters are percent-encoded: servers decode
 * names before they compare them. `name` is ASCII without characters that have a meaning in patterns.
 */
export function namePattern(name: string): string {
  return [...name]
    .map((character) => {
      const digits = character.charCodeAt(0).toString(16).padStart(2, '0')
      return `(?:${character}|%${digits.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)})`
    })
    .join('')
}
