/** One rule names an option everywhere: `apiPort` is `--api-port` and `HOMEPORT_API_PORT`. */

const words = (name: string): string[] => name.split(/(?=[A-Z])/).map((word) => word.toLowerCase())

/** `dataDir` becomes `--data-dir`. */
export const flagName = (option: string): string => `--${words(option).join('-')}`

/** `dataDir` becomes `HOMEPORT_DATA_DIR`. */
export const envName = (option: string): string => `HOMEPORT_${words(option).join('_').toUpperCase()}`

/** How many single-letter edits lead from one word to the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}

/** The known word closest to a misspelt one, or `undefined` when none is close. */
export function closest(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, edits: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)[0]
  return ranked && ranked.edits <= Math.max(2, Math.floor(word.length / 3)) ? ranked.candidate : undefined
}

/** "; did you mean X?" or nothing. */
export function suggestion(word: string, known: readonly string[]): string {
  const match = closest(word, known)
  return match === undefined ? '' : `; did you mean ${match}?`
}
