/** How much a batch may hold. */
export interface BatchLimits {
  readonly bytes: number
  readonly items: number
}

/** Cuts a list into batches within these limits. An item that alone exceeds `most.bytes` gets a batch of its own. */
export function batchesOf<Item extends { readonly bytes: number }>(
  items: readonly Item[],
  most: BatchLimits,
): readonly (readonly Item[])[] {
  const batches: Item[][] = []
  let batch: Item[] = []
  let total = 0
  for (const item of items) {
    total += item.bytes
    if (batch.length === 0 || total > most.bytes || batch.length === most.items) {
      batch = []
      batches.push(batch)
      total = item.bytes
    }
    batch.push(item)
  }
  return batches
}
