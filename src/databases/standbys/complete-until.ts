/** Maximum samples for a copy that is behind: one a second for a minute. */
const MAX_SAMPLES = 60

/** An offset of the home: every write answered before `at`, Unix milliseconds, lies below it. */
export interface Sample {
  readonly at: number
  readonly replid: string
  readonly offset: number
}

/**
 * Adds a sample. Drops samples of another history, because their offsets say nothing about this one, and samples from before
 * the clock was set back.
 */
export function remember(samples: readonly Sample[], now: Sample): readonly Sample[] {
  return [...samples.filter(({ replid, at }) => replid === now.replid && at <= now.at), now].slice(-MAX_SAMPLES)
}

/**
 * The time to store. It does not go back when the copy falls behind, except below the clock of the home after that was set
 * back: writes that are answered from then on may be missing.
 * @param until see `completeUntil`. @param known the stored time. @param now the time of the latest sample.
 */
export function promisedUntil({
  until,
  known,
  now,
}: {
  readonly until: number | undefined
  readonly known: number | null
  readonly now: number
}): number | null {
  return Math.max(until ?? 0, known !== null && known <= now ? known : 0) || null
}

/**
 * Until when a copy at this offset has every write that was answered: the newest moment whose offset it has reached.
 * Undefined when it has reached none, or follows another history.
 */
export function completeUntil(
  samples: readonly Sample[],
  copy: { readonly replid: string; readonly offset: number },
): number | undefined {
  return samples.filter(({ replid, offset }) => replid === copy.replid && offset <= copy.offset).at(-1)?.at
}
