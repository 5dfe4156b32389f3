import { AccountDeletion } from './account-deletion.js'
import type { Accounts } from './accounts/index.js'
import { systemClock, VERSION } from './base/index.js'
import type { Databases } from './databases/index.js'
import type { Foundations } from './foundations.js'
import { databaseMetricsRoute, metricsSource } from './metrics.js'
import { nodesAdministrationRoutes } from './nodes-administration.js'
import type { Queue } from './queue/index.js'
import { queueAdministrationRoutes } from './queue-administration.js'
import { ServerLogs } from './server-logs.js'

/** What the operator of a server looks at and changes. */
interface Operated {
  readonly accounts: Accounts
  readonly databases: Databases
  readonly queue: Queue
}

/** What the operator needs: metrics, the log, the queues of accounts, and what follows from suspending or deleting one. */
export function composeOperator(foundations: Foundations, { accounts, databases, queue }: Operated) {
  const { config, store } = foundations
  const clock = systemClock
  const isOperator = (accountId: string): boolean => accounts.isFirst(accountId)
  const metrics = metricsSource({
    ...{ ...foundations, databases, queue, clock, version: VERSION, isOperator },
    heldAccounts: () => accounts.heldIds,
  })
  const logs = new ServerLogs({
    ...{ lines: foundations.recentLines, clock, isOperator },
    startedAt: Math.floor(clock.now()),
  })
  const nodes = nodesAdministrationRoutes({
    ...{ accounts, cluster: foundations.cluster, store },
    ...{ placement: databases.placement, moves: databases.moves },
  })
  const queues = queueAdministrationRoutes({ config, accounts, store, now: () => clock.now() })
  return {
    metrics,
    routes: [...queues, ...nodes, metrics.route, databaseMetricsRoute({ databases }), logs.route],
    services: [composeDeletion(foundations, { accounts, databases, queue }), logs],
  }
}

/** What follows when the operator suspends or deletes an account. */
function composeDeletion({ store, logger }: Foundations, { accounts, databases, queue }: Operated) {
  const deletion = new AccountDeletion({
    ...{ store, clock: systemClock, logger, databases, queue },
    reload: () => accounts.reload(),
  })
  const follow = async (): Promise<void> => {
    queue.accountsChanged()
    await databases.followAccounts()
  }
  accounts.operator.watch({
    onSuspension: follow,
    onChangeElsewhere: follow,
    onDeletion: () => {
      queue.accountsChanged()
      return deletion.complete().finally(() => queue.accountsChanged())
    },
  })
  return deletion
}
