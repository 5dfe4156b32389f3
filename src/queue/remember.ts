/** How much is remembered, so that memory stays bounded. */
export interface RememberLimits {
  /** How many results are remembered; then all are forgotten. */
  readonly most: number
  /** Longer texts are worked out each time. */
  readonly longest: number
}

/**
 * A pure function of a text that remembers its results: messages of one publisher come in a row and say the same.
 * Results are shared, so they must never be changed.
 */
export function remembering<Result>(work: (text: string) => Result, { most, longest }: RememberLimits) {
  const known = new Map<string, { readonly result: Result }>()
  return (text: string): Result => {
    const found = known.get(text)
    if (found) return found.result
    const result = work(text)
    if (text.length > longest) return result
    if (known.size >= most) known.clear()
    known.set(text, { result })
    return result
  }
}
