import type { PausedWorkflow } from '../transactions/runs-pause.js'
import type { NewRun } from '../transactions/runs-rows.js'

/** A run that is about to start. */
export type Starting = Pick<NewRun, 'run_id' | 'url' | 'host' | 'path' | 'labels' | 'flow_key' | 'caller_ip'>

/** Decides whether runs may start; `bulk` implements it. */
export interface TriggerGate {
  /**
   * Calls `work`, which creates these runs, unless one of them may not start. The runs count as starting until `work` has
   * settled. `work` gets the paused workflows that the runs belong to, and creates these runs paused.
   * @throws HomeportError the reason for the refusal; then `work` was not called.
   */
  pass<Made>(accountId: string, runs: readonly Starting[], at: number, work: StartWork<Made>): Promise<Made>
}

/** Creates runs that may start. */
export type StartWork<Made> = (paused: readonly PausedWorkflow[]) => Promise<Made>
