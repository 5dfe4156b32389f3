/** A text with its percent-encoding decoded; the text itself if that is malformed. */
export function decodedOrSame(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
