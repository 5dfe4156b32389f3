import { type Accounts, installationOf } from '../accounts/index.js'
import { systemClock, VERSION } from '../base/index.js'
import { type Databases, withHomes } from '../databases/index.js'
import type { Queue } from '../queue/index.js'
import { BackupSchedule, ServiceBackups, serviceBackupRoutes } from '../service-backup/index.js'
import { AccountDeletion } from './account-deletion.js'
import type { Foundations } from './foundations.js'
import { LostNodes } from './lost-nodes.js'
import { databaseMetricsRoute, metricsSource } from './metrics.js'
import { nodesAdministrationRoutes } from './nodes-administration.js'
import type { ProblemsOfNodes } from './problems-of-nodes.js'
import { queueAdministrationRoutes } from './queue-administration.js'
import { ServerLogs } from './server-logs.js'

/** The modules that the operator's operations read and change. */
interface Operated {
  readonly accounts: Accounts
  readonly databases: Databases
  readonly queue: Queue
  readonly problemsOfNodes: ProblemsOfNodes
}

/** Composes the operator's routes and services: metrics, log, queues, nodes, backups, and the deletion of accounts. */
export function composeOperator(foundations: Foundations, operated: Operated) {
  const { accounts, databases, queue } = operated
  const { config, store } = foundations
  const clock = systemClock
  const isOperator = (accountId: string): boolean => accounts.isFirst(accountId)
  const metrics = metricsSource({
    ...foundations,
    databases,
    queue,
    clock,
    version: VERSION,
    isOperator,
    heldAccounts: () => accounts.heldIds,
  })
  const logs = new ServerLogs({
    lines: foundations.recentLines,
    clock,
    isOperator,
    startedAt: Math.floor(clock.now()),
  })
  const nodes = nodesAdministrationRoutes({
    accounts,
    cluster: foundations.cluster,
    store,
    placement: databases.placement,
    problems: operated.problemsOfNodes,
    moves: databases.others.moves,
    standbys: databases.others.standbys,
  })
  const { serviceBackups, schedule } = composeServiceBackups(foundations, databases)
  const lostNodes = new LostNodes({ ...foundations, clock })
  const queues = queueAdministrationRoutes({ config, accounts, store, now: () => clock.now() })
  return {
    metrics,
    routes: [
      ...queues,
      ...nodes,
      metrics.route,
      logs.route,
      ...withHomes(databases.homes, [databaseMetricsRoute({ databases })]),
      ...serviceBackupRoutes(serviceBackups, accounts),
    ],
    services: [composeDeletion(foundations, operated), logs, serviceBackups, schedule, lostNodes],
  }
}

/** Backups of the whole service, on demand and on a schedule. */
function composeServiceBackups({ config, logger, problems, serviceBackupPlace }: Foundations, databases: Databases) {
  const shared = {
    placeAt: serviceBackupPlace,
    installation: () => installationOf(config.dataDir),
    clock: systemClock,
  }
  const serviceBackups = new ServiceBackups({
    ...shared,
    dataDir: config.dataDir,
    logger,
    refusal: backupRefusal(config),
    snapshot: (databaseId, file) => databases.backups.snapshot(databaseId, file),
  })
  const schedule = new BackupSchedule({
    ...shared,
    to: config.backupTo,
    everyMs: config.backupEvery,
    keep: config.backupKeep,
    backups: serviceBackups,
    problems,
  })
  return { serviceBackups, schedule }
}

/** Why a server cannot back up all of itself. */
function backupRefusal({ node, store }: Foundations['config']): string | undefined {
  if (node !== undefined) {
    return 'a node of a cluster has only its own databases. Back up PostgreSQL with pg_dump, and databases with --backups s3://bucket/prefix'
  }
  if (store.kind === 'sqlite') return undefined
  return 'the store is in PostgreSQL, which this backup does not read. Back it up with pg_dump, and databases with --backups s3://bucket/prefix'
}

/** Applies the suspension and deletion of accounts by the operator to databases and the queue. */
function composeDeletion({ store, logger }: Foundations, { accounts, databases, queue }: Operated) {
  const deletion = new AccountDeletion({
    store,
    clock: systemClock,
    logger,
    databases,
    queue,
    reload: () => accounts.reload(),
  })
  const follow = async (): Promise<void> => {
    queue.accountsChanged()
    await databases.followAccounts()
  }
  accounts.operator.watch({
    onSuspension: follow,
    onChangeByOtherNode: follow,
    onDeletion: (only) => {
      queue.accountsChanged()
      return deletion.complete(only).finally(() => queue.accountsChanged())
    },
  })
  return deletion
}
