import { HomeportError } from '../../contract/errors/errors.js'
import type { ColumnTypes } from '../dialect.js'
import { accounts } from './001-accounts.js'
import { databases } from './002-databases.js'
import { messages } from './003-messages.js'
import { runs } from './004-runs.js'
import { bulk } from './005-bulk.js'
import { changes } from './006-changes.js'
import { backups } from './007-backups.js'
import { queues } from './008-queues.js'
import { deadRuns } from './009-dead-runs.js'
import { usage } from './010-usage.js'
import { aclUsers } from './011-acl-users.js'
import { queueOfMany } from './013-queue.js'
import { bulkKinds } from './014-bulk.js'
import { consoleSessions } from './015-console-sessions.js'
import { clientAuthority } from './016-client-authority.js'
import { runAttempts } from './018-run-attempts.js'
import { messagesRetried } from './020-messages-retried.js'
import { resumedRuns } from './022-resumed-runs.js'
import { bulkCallbacks } from './024-bulk-callbacks.js'
import { checksums } from './025-checksums.js'
import { runWebhooks } from './026-run-webhooks.js'
import { dataProblem } from './027-data-problem.js'
import { engineSettings } from './028-engine-settings.js'
import { alerts } from './029-alerts.js'
import { credentials } from './030-credentials.js'
import { operator } from './031-operator.js'
import { queueAccounts } from './032-queue-accounts.js'
import { tableCare } from './033-table-care.js'
import { nodeHolder } from './034-node-holder.js'
import { accountLimits } from './036-account-limits.js'
import { alertEpisodes } from './037-alert-episodes.js'
import { cluster } from './038-cluster.js'
import { partitions } from './040-partitions.js'
import { bulkOwner } from './041-bulk-owner.js'
import { clusterAuthority } from './042-cluster-authority.js'
import { databaseHome } from './043-database-home.js'
import { openRuns } from './044-open-runs.js'
import { attemptsOfMessages } from './045-attempts-of-messages.js'
import { generations } from './047-generations.js'
import { databaseMoves } from './048-database-moves.js'
import { backupObjects } from './051-backup-objects.js'
import { nodeRegions } from './053-node-regions.js'
import { undo } from './054-undo.js'
import { openKinds } from './055-open-kinds.js'
import { pausedRuns } from './056-paused-runs.js'
import { savedSelectors } from './059-saved-selectors.js'
import { databaseStandbys } from './064-database-standbys.js'
import { ruleKeys } from './065-rule-keys.js'
import { runRuleKeys } from './066-run-rule-keys.js'
import { standbyPlacement } from './068-standby-placement.js'
import { standbyMode } from './069-standby-mode.js'
import { stepTimes } from './074-step-times.js'
import { activity } from './082-activity.js'
import { notifiedEvents } from './083-notified-events.js'
import { replacedRuns } from './090-replaced-runs.js'
import { unreadableItems } from './091-unreadable-items.js'
import { pausedWorkflows } from './092-paused-workflows.js'
import { runsByName } from './093-runs-by-name.js'
import { waitsInOrder } from './094-waits-in-order.js'
import { setAsideFiles } from './095-set-aside-files.js'
import { standbySets } from './096-standby-sets.js'
import { sessionSecrets } from './097-session-secrets.js'
import { deletedBackups } from './098-deleted-backups.js'
import { GENERATION, type Migration, worksWith } from './migration.js'

/** All migrations in order. */
export const MIGRATIONS: readonly Migration[] = [
  accounts,
  databases,
  messages,
  runs,
  bulk,
  changes,
  backups,
  queues,
  deadRuns,
  usage,
  aclUsers,
  queueOfMany,
  bulkKinds,
  consoleSessions,
  clientAuthority,
  runAttempts,
  messagesRetried,
  resumedRuns,
  bulkCallbacks,
  checksums,
  runWebhooks,
  dataProblem,
  engineSettings,
  alerts,
  credentials,
  operator,
  queueAccounts,
  tableCare,
  nodeHolder,
  accountLimits,
  alertEpisodes,
  cluster,
  partitions,
  bulkOwner,
  clusterAuthority,
  databaseHome,
  openRuns,
  attemptsOfMessages,
  generations,
  databaseMoves,
  backupObjects,
  nodeRegions,
  undo,
  openKinds,
  pausedRuns,
  savedSelectors,
  databaseStandbys,
  ruleKeys,
  runRuleKeys,
  standbyPlacement,
  standbyMode,
  stepTimes,
  activity,
  notifiedEvents,
  replacedRuns,
  unreadableItems,
  pausedWorkflows,
  runsByName,
  waitsInOrder,
  setAsideFiles,
  standbySets,
  sessionSecrets,
  deletedBackups,
]

/** Creates the table that records the applied migrations. It runs before the first migration. */
export function ledgerStatement(types: ColumnTypes): string {
  return `CREATE TABLE IF NOT EXISTS schema_migrations (
    number ${types.integer} PRIMARY KEY,
    name ${types.text} NOT NULL,
    breaking ${types.integer} NOT NULL,
    applied_at ${types.integer} NOT NULL
  )`
}

/** A row of `schema_migrations`. */
export interface AppliedMigration {
  readonly number: number
  readonly name: string
  readonly breaking: number
  /** The oldest generation that works with it; absent before migration 47. */
  readonly works_from?: number | null
}

/**
 * Recorded in a store into which a copy is being written, and removed when the copy is complete. It looks like a breaking
 * migration of a later version, so a Homeport that knows nothing of copies refuses the store too.
 */
export const UNFINISHED_COPY: AppliedMigration = { number: 999_999_999, name: 'unfinished copy', breaking: 1 }

/** Whether a store is an unfinished copy. */
export const isUnfinishedCopy = (applied: readonly AppliedMigration[]): boolean =>
  applied.some(({ number }) => number === UNFINISHED_COPY.number)

/**
 * The migrations that are missing in a store.
 * @throws HomeportError `store_newer` when the store has a migration of a newer Homeport that this one does not work with,
 * `store_copy_unfinished` when a copy is being written into it.
 */
export function pendingMigrations(applied: readonly AppliedMigration[], generation = GENERATION): readonly Migration[] {
  if (isUnfinishedCopy(applied)) throw new HomeportError('store_copy_unfinished', {})
  const known = new Set(MIGRATIONS.map((migration) => migration.number))
  const foreign = applied.find((row) => !known.has(row.number) && !worksWith(row, generation))
  if (foreign) throw new HomeportError('store_newer', { number: foreign.number, name: foreign.name })
  const done = new Set(applied.map((row) => row.number))
  return MIGRATIONS.filter((migration) => !done.has(migration.number))
}

/**
 * Whether a store has no migration yet. It then gets all of them in one transaction: nobody reads it meanwhile, and waiting
 * for the disk after each migration would take much of the time of a first start.
 */
export const isNewStore = (pending: readonly Migration[]): boolean => pending.length === MIGRATIONS.length

/** The statement that records a migration. */
export function recordOf(migration: Migration, atMs: number): string {
  const { number, name, breaking, worksFrom } = migration
  const extra = worksFrom === undefined ? ['', ''] : [', works_from', `, ${worksFrom}`]
  return `INSERT INTO schema_migrations (number, name, breaking, applied_at${extra[0]}) VALUES (${number}, '${name}', ${breaking ? 1 : 0}, ${atMs}${extra[1]})`
}
