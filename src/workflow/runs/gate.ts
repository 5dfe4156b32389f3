import type { NewRun } from '../transactions/runs-rows.js'

/** A run that is about to be made. */
export type Starting = Pick<NewRun, 'run_id' | 'url' | 'host' | 'path' | 'labels' | 'flow_key' | 'caller_ip'>

/** Decides, for a room above, whether runs may start. */
export interface TriggerGate {
  /**
   * Does `work`, which makes these runs, unless one of them may not start. What is let pass is under way until `work`
   * has settled.
   * @throws HomeportError why not; then nothing was made.
   */
  pass<Made>(accountId: string, runs: readonly Starting[], at: number, work: () => Promise<Made>): Promise<Made>
}
