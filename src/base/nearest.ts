/** How many single-letter changes a misspelling may be away from the word that was meant. */
const FARTHEST = 3

/** The known word that `word` most likely was meant to be, or `undefined` when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .filter((candidate) => Math.abs(candidate.length - word.length) <= reachOf(candidate))
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best && best.distance <= reachOf(best.candidate) ? best.candidate : undefined
}

/** Half of a word that is wrong makes another word. */
const reachOf = (candidate: string): number => Math.min(FARTHEST, Math.floor(candidate.length / 2))

/** Insertions, deletions and replacements that turn one text into the other; costs the product of their lengths. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}
