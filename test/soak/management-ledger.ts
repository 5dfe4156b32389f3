import type { NewDatabase } from './database-load.js'

/** A database that comes and goes, by its name, which no other database has. */
export type Passing =
  | { readonly state: 'creating'; readonly name: string }
  | { readonly state: 'created'; readonly name: string; readonly database: NewDatabase; readonly value: string }
  | { readonly state: 'deleting'; readonly name: string; readonly database: NewDatabase }
  | { readonly state: 'deleted'; readonly name: string; readonly database: NewDatabase }

/** What callers of the management API know for certain. */
export class ManagementLedger {
  readonly passing = new Map<string, Passing>()
  /** Passwords of users whose creation was answered and whose deletion was not sent, by name. */
  readonly users = new Map<string, string>()
  /** Users whose deletion was answered. */
  readonly formerUsers = new Map<string, string>()
  /** What backups that were answered hold, by their names. */
  readonly backups = new Map<string, string>()
  /** What the database of backups may hold now: more than one value once an answer was lost. */
  possible = new Set<string>()
  /** The last write to it that was answered, with what it held before. */
  written: { readonly atMs: number; readonly before: ReadonlySet<string> } | undefined
  /** Answered writes to it that were lost within the time that is documented. */
  lostWithinWindow = 0
  restores = 0

  note(passing: Passing): void {
    this.passing.set(passing.name, passing)
  }

  count(state: Passing['state']): number {
    return [...this.passing.values()].filter((one) => one.state === state).length
  }
}
