/** Bounds of the memory that a memoized function uses. */
export interface MemoLimits {
  /** Results kept. When there are this many, all are dropped. */
  readonly most: number
  /** Longer inputs are computed each time. */
  readonly longest: number
}

/**
 * Memoizes a pure function of a string. It pays off because consecutive messages of one publisher have the same headers
 * and settings. Callers share the results and must not change them.
 */
export function memoized<Result>(work: (text: string) => Result, { most, longest }: MemoLimits) {
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
