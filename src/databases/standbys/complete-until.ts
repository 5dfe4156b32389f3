/** Maximum samples for a copy that is behind: one a second for a minute. */
const MOST_SAMPLES = 60

/** An offset of the home: every write answered before `at`, Unix milliseconds, lies below it. */
export interface Sample {
  readonly at: number
  readonly replid: string
  readonly offset: number
}

/** Adds a sample, and drops samples of another history, because their offsets say nothing about this one. */
export function remember(samples: readonly Sample[], now: Sample): readonly Sample[] {
  return [...samples.filter(({ replid }) => replid === now.replid), now].slice(-MOST_SAMPLES)
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
