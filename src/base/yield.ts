/** Ends this turn of the event loop: long work in batches lets everybody else go first between them. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
