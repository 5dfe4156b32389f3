import type { Starting } from '../../workflow/index.js'
import { type PausedWorkflow, storedPause } from '../../workflow/transactions/runs-pause.js'
import type { PausedRow } from '../transactions/bulk-paused.js'

const NONE: readonly PausedWorkflow[] = []

/**
 * The paused workflows of all accounts, in memory on every node. For an account without any, a trigger costs one map lookup.
 */
export class PausedWorkflows {
  readonly #byAccount = new Map<string, ReadonlyMap<string, PausedWorkflow>>()

  /** Replaces the paused workflows of all accounts. */
  load(rows: readonly PausedRow[]): void {
    this.#byAccount.clear()
    for (const accountId of new Set(rows.map((row) => row.account_id))) {
      this.replace(
        accountId,
        rows.filter((row) => row.account_id === accountId),
      )
    }
  }

  /** Replaces the paused workflows of an account. */
  replace(accountId: string, rows: readonly PausedRow[]): void {
    const workflows = rows.map(
      ({ url, paused_at: at, pause }) => [url, { url, at, pause: storedPause(pause) }] as const,
    )
    if (workflows.length > 0) this.#byAccount.set(accountId, new Map(workflows))
    else this.#byAccount.delete(accountId)
  }

  /** The paused workflows that these runs belong to. */
  of(accountId: string, runs: readonly Starting[]): readonly PausedWorkflow[] {
    const known = this.#byAccount.get(accountId)
    if (!known) return NONE
    const urls = new Set(runs.map(({ url }) => url))
    return [...urls].flatMap((url) => known.get(url) ?? [])
  }
}
