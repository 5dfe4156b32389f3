import type { Logger } from 'pino'
import type { Clock } from '../base/index.js'
import type { Config } from '../config/index.js'
import type { PlanTable } from '../contract/plans.js'
import type { Fleet } from '../fleet/index.js'
import type { Store } from '../store/index.js'

/** What the databases are made of. */
export interface DatabasesOptions {
  /** Root of Homeport's durable files; backups are kept in it. */
  readonly dataDir: string
  readonly store: Store
  readonly fleet: Pick<
    Fleet,
    | 'ensure'
    | 'remove'
    | 'endpoints'
    | 'usedBytes'
    | 'collectOrphans'
    | 'takeSnapshot'
    | 'checkSnapshot'
    | 'adoptSnapshot'
  >
  readonly clock: Clock
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** From `loadPlans`. */
  readonly plans: PlanTable
  readonly settings: DatabaseSettings
  /** E-mail of an account that exists. */
  readonly emailOf: (accountId: string) => string
  /**
   * Resolves when clients can connect to the database's port; rejects with `port_taken` when another program holds it.
   * The database stands in the directory by then.
   */
  readonly onServing: (databaseId: string) => Promise<void>
}

/** The part of the configuration that databases read. */
export type DatabaseSettings = Pick<
  Config,
  | 'redisPorts'
  | 'publicRedisHost'
  | 'publicRestUrl'
  | 'redisTlsByDefault'
  | 'proxyTerminatesTls'
  | 'freeAccountDatabases'
  | 'paidAccountDatabases'
>
