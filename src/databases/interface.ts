import type { Service } from '../base/index.js'
import type { AwakeRecord } from '../contract/databases/awake.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import type { DataReport, EngineEndpoint } from '../fleet/index.js'
import type { Caller } from '../http/index.js'
import type { Backups } from './backups/index.js'
import type { Changes } from './changes/changes.js'
import type { ClusterFeatures } from './cluster-features.js'
import type { ServingDirectory } from './directory.js'
import type { Homes } from './homes.js'
import type { DatabaseRow } from './lifecycle.js'
import type { CreationRequest } from './older-spelling.js'
import type { Placement } from './placement.js'
import type { Quarantine } from './quarantine/index.js'
import type { Recovery } from './recovery.js'
import type { KnownDatabases } from './summaries.js'
import type { Usage } from './usage/index.js'
import type { Administration } from './users/index.js'

/** The databases of all accounts. */
export interface Databases extends Service {
  /** What the data plane serves, with credentials and limits. Complete once `start` has resolved. */
  readonly directory: ServingDirectory
  /** Backups of the databases. Start it after the listeners and stop it before them. */
  readonly backups: Backups
  /** Databases whose node is gone. */
  readonly recovery: Recovery
  /** What the databases use. Start it after the databases and before the data plane; stop it after the data plane. */
  readonly usage: Usage
  /** Files of the data directory that the store does not know. */
  readonly quarantine: Quarantine

  /**
   * Creates a database; resolves when it accepts commands and every read region replicates. When it rejects, nothing is
   * left.
   * @param key value of `Idempotency-Key`, if the caller sent one.
   */
  create(caller: Caller, body: CreationRequest, key?: string): Promise<DatabaseRecord>
  /** One database of the account; rejects with `database_not_found`. */
  get(caller: Caller, databaseId: string, credentials: 'show' | 'hide'): Promise<DatabaseRecord>
  /** All databases of the account, oldest first. One that is created or deleted meanwhile may or may not be listed. */
  list(caller: Caller, credentials: 'show' | 'hide'): Promise<DatabaseRecord[]>
  /**
   * The databases of an account for lists and counts (`summaries.ts`), from memory; in a cluster also those of other nodes.
   */
  known(accountId: string): Promise<KnownDatabases>
  /** Which node serves which database. */
  readonly homes: Homes
  /** Which node a new database gets. */
  readonly placement: Placement
  /** Moves, standbys, replicas and set-aside files: what needs other nodes. */
  readonly others: ClusterFeatures
  /** Changes of existing databases. */
  readonly changes: Changes
  /** Answers the ACL and CONFIG commands of the data plane. */
  readonly administration: Administration
  /** The record of a database, with the credentials that this caller may see. */
  recordFor(row: DatabaseRow, caller: Caller): DatabaseRecord
  /** Deletes a database of the account; resolves when nothing is left of it. */
  remove(caller: Caller, databaseId: string): Promise<void>

  /** The ids of all databases of an account, in whatever state. */
  idsOf(accountId: string): Promise<string[]>
  /** Makes databases refuse or serve their clients after accounts were suspended or resumed. */
  followAccounts(): void

  /** What keeps a database of the account awake, or since when it sleeps. Does not wake it. */
  whyAwake(caller: Caller, databaseId: string): Promise<AwakeRecord>
  /** Whether the engines of a database run or are starting. */
  isAwake(databaseId: string): boolean
  /** Whether any database is awake. */
  readonly isAnyAwake: boolean

  /**
   * Where a client's request reaches the engines of a database. Wakes a sleeping database and waits while its engines
   * make progress. Rejects as `Fleet.endpoints` does, and with the reason while the database is suspended.
   */
  endpoints(databaseId: string, signal?: AbortSignal): Promise<readonly EngineEndpoint[]>

  /** Records what the fleet found about a database's data. */
  recordDataReport(databaseId: string, report: DataReport): void
}
