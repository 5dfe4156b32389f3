import type { NewDatabase } from './database-load.js'

/** A database that is created and deleted during the load, by its unique name. */
export type Passing =
  | { readonly state: 'creating'; readonly name: string }
  | { readonly state: 'created'; readonly name: string; readonly database: NewDatabase; readonly value: string }
  | { readonly state: 'deleting'; readonly name: string; readonly database: NewDatabase }
  | { readonly state: 'deleted'; readonly name: string; readonly database: NewDatabase }

/** What callers of the management API have observed. */
export class ManagementLedger {
  readonly passing = new Map<string, Passing>()
  /** By name: passwords of users whose creation was acknowledged and whose deletion was not requested. */
  readonly users = new Map<string, string>()
  /** Users whose deletion was acknowledged. */
  readonly formerUsers = new Map<string, string>()
  /** By name: the value in each acknowledged backup. */
  readonly backups = new Map<string, string>()
  /** The possible values of the database for backups: more than one after an answer was lost. */
  possible = new Set<string>()
  /** The last acknowledged write to it, with the value before. */
  written: { readonly atMs: number; readonly before: ReadonlySet<string> } | undefined
  /** Acknowledged writes to it that were lost within the documented time. */
  lostWithinWindow = 0
  restores = 0

  note(passing: Passing): void {
    this.passing.set(passing.name, passing)
  }

  count(state: Passing['state']): number {
    return [...this.passing.values()].filter((one) => one.state === state).length
  }
}
