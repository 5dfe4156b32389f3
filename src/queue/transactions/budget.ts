/** Where a look at sizes stands: items before a number are next, and this many bytes may still be kept. */
export interface BudgetStep {
  readonly before: number
  readonly leftBytes: number
  /** How many items are looked at. */
  readonly limit: number
}

/** What a step came to: the number of the newest item that does not fit any more, where to go on, or that all fits. */
export type BudgetPart =
  | { readonly kind: 'beyond'; readonly seq: number }
  | { readonly kind: 'more'; readonly before: number; readonly leftBytes: number }
  | { readonly kind: 'fits' }

/** Takes sizes, newest first, off what is left. Done where the rows are read: of millions only this needs to travel. */
export function takeOff(
  rows: readonly { readonly seq: number; readonly bytes: number }[],
  { leftBytes, limit }: BudgetStep,
): BudgetPart {
  let left = leftBytes
  for (const { seq, bytes } of rows) {
    // A sum is a decimal number in PostgreSQL.
    left -= Number(bytes)
    if (left < 0) return { kind: 'beyond', seq }
  }
  const last = rows.at(-1)
  return last && rows.length === limit ? { kind: 'more', before: last.seq, leftBytes: left } : { kind: 'fits' }
}
