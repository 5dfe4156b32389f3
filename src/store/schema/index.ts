import type { AccountTables } from './accounts.js'
import type { ActivityTables } from './activity.js'
import type { AlertTables } from './alerts.js'
import type { BackupTables } from './backups.js'
import type { BulkTables } from './bulk.js'
import type { ClusterTables } from './cluster.js'
import type { ClusterAuthorityTables } from './cluster-authority.js'
import type { DatabaseTables } from './databases.js'
import type { MessageTables } from './messages.js'
import type { QueueTables } from './queues.js'
import type { RunTables } from './runs.js'
import type { UsageTables } from './usage.js'

/** All tables and the types of their columns. Booleans are 0 and 1, times are Unix milliseconds, JSON is text. */
export type Tables = AccountTables &
  UsageTables &
  DatabaseTables &
  BackupTables &
  MessageTables &
  QueueTables &
  RunTables &
  BulkTables &
  ClusterAuthorityTables &
  ClusterTables &
  AlertTables &
  ActivityTables

export type * from './accounts.js'
export type * from './activity.js'
export type * from './alerts.js'
export type * from './backups.js'
export type * from './bulk.js'
export type * from './cluster.js'
export type * from './cluster-authority.js'
export type * from './databases.js'
export type * from './messages.js'
export type * from './queues.js'
export type * from './runs.js'
export type * from './usage.js'
