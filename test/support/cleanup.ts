import { onFailedExit } from './exit-guard.js'

type Cleanup = () => Promise<void> | void

const cleanups: Cleanup[] = []

/**
 * Registers a cleanup. Under Vitest it runs after the last test of the file (see `setup.ts`);
 * a benchmark calls `cleanup()` itself. The last registered runs first.
 */
export function atCleanup(undo: Cleanup): void {
  cleanups.push(undo)
}

/** Runs all registered cleanups, newest first. A failure does not keep the others from running. */
export async function cleanup(): Promise<void> {
  const failures: unknown[] = []
  for (let undo = cleanups.pop(); undo; undo = cleanups.pop()) {
    try {
      await undo()
    } catch (error) {
      failures.push(error)
    }
  }
  onFailedExit.clear()
  if (failures.length === 1) throw failures[0]
  if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('\n'))
}
