/** Largest edit distance at which a word still counts as a misspelling. */
const MAX_DISTANCE = 3

/** The known word that is closest to a misspelt one, or `undefined` when none is close. */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .filter((candidate) => Math.abs(candidate.length - word.length) <= maxDistanceTo(candidate))
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best && best.distance <= maxDistanceTo(best.candidate) ? best.candidate : undefined
}

/** At most half of the letters may differ: otherwise it is another word. */
const maxDistanceTo = (candidate: string): number => Math.min(MAX_DISTANCE, Math.floor(candidate.length / 2))

/** Number of insertions, deletions and replacements between two texts. Costs the product of their lengths. */
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
