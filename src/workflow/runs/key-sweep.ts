import type { Store } from '../../store/index.js'
import * as runsKept from '../transactions/runs-kept.js'
import * as runsRules from '../transactions/runs-rules.js'

/** Rows of one transaction. Other writers run between two transactions. */
const ROWS_PER_STEP = 1_000

/** Deletes the data kept for the undo of old cancels, and old debounce and singleton keys whose run has ended. */
export async function sweepRunKeys(store: Store, before: number, shouldContinue: () => boolean): Promise<void> {
  const limit = ROWS_PER_STEP
  while (shouldContinue() && (await store.run(runsKept.sweepKept, { before, limit })));
  for (let from: number | undefined = 0; from !== undefined && shouldContinue(); )
    from = await store.run(runsRules.sweep, { from, before, limit })
}
