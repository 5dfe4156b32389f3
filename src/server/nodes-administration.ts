/** The operator's operations on the nodes of a cluster. */
import type { Accounts } from '../accounts/index.js'
import { systemClock } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import * as nodesAdmin from '../cluster/transactions/nodes-admin.js'
import { listDatabaseMoves, moveDatabaseToNode } from '../contract/server/moves.js'
import { type ClusterNode, drainNode, listNodes, removeNode, resumeNode } from '../contract/server/nodes.js'
import {
  endDatabaseStandby,
  listDatabaseStandbys,
  placeDatabaseStandby,
  placeDatabaseStandbys,
  removeDatabaseStandby,
  setDatabaseStandby,
} from '../contract/server/standbys.js'
import {
  type Databases,
  dropStandby,
  listMoves,
  listStandbys,
  type Moves,
  placeStandby,
  placeStandbys,
  putStandby,
  removeNodeWithDatabases,
  requestMove,
  type Standbys,
} from '../databases/index.js'
import { type Caller, ok, type Route, route } from '../http/index.js'
import type { Store } from '../store/index.js'
import type { ProblemsOfNodes } from './problems-of-nodes.js'

/** Collaborators of the operations on nodes. */
export interface NodesAdministrationDeps {
  readonly accounts: Pick<Accounts, 'requireOperator'>
  readonly cluster: Pick<Cluster, 'isSingleNode' | 'incarnation'>
  readonly store: Store
  readonly placement: Pick<Databases['placement'], 'capacities'>
  readonly problems: Pick<ProblemsOfNodes, 'counts'>
  readonly moves: Moves | undefined
  readonly standbys: Standbys | undefined
}

/** The operations of the management API on nodes. */
export function nodesAdministrationRoutes(deps: NodesAdministrationDeps): Route[] {
  const { accounts, cluster, store, placement, problems, moves } = deps
  const steer = (name: string, state: 'live' | 'draining') => store.run(nodesAdmin.setNodeState, { name, state })
  return [
    route(listNodes, async ({ caller }) => {
      accounts.requireOperator(caller)
      if (cluster.isSingleNode) return []
      const [rows, capacities, counts] = await Promise.all([
        store.run(nodesAdmin.list, {}),
        placement.capacities(),
        problems.counts(),
      ])
      return rows.map((row) => {
        const memory = capacities.get(row.name)?.engineBytes
        const count = counts.get(row.incarnation)
        return {
          ...render(row, cluster.incarnation),
          ...(memory !== undefined && { engine_memory: memory }),
          ...(count !== undefined && { problems: count }),
        }
      })
    }),
    route(drainNode, ({ caller, params }) => {
      accounts.requireOperator(caller)
      return ok(steer(params.name, 'draining'))
    }),
    route(resumeNode, ({ caller, params }) => {
      accounts.requireOperator(caller)
      return ok(steer(params.name, 'live'))
    }),
    route(moveDatabaseToNode, ({ caller, params, body }) => {
      accounts.requireOperator(caller)
      return ok(requestMove({ store, caller, moves, at: systemClock.now() }, body.database_id, params.name))
    }),
    route(listDatabaseMoves, ({ caller }) => {
      accounts.requireOperator(caller)
      return listMoves(store)
    }),
    route(removeNode, ({ caller, params: { name }, query }) => {
      accounts.requireOperator(caller)
      const isLosing = query.lose_databases === true
      return ok(
        isLosing ? removeNodeWithDatabases(store, name, systemClock.now()) : store.run(nodesAdmin.remove, { name }),
      )
    }),
    ...standbyRoutes(deps),
  ]
}

/** The operations of the management API on standbys of databases. */
function standbyRoutes({ accounts, store, standbys }: NodesAdministrationDeps): Route[] {
  const asking = (caller: Caller) => ({ store, caller, standbys, at: systemClock.now() })
  return [
    route(setDatabaseStandby, ({ caller, params, body }) => {
      accounts.requireOperator(caller)
      return ok(putStandby(asking(caller), params.id, { ...body, node: params.name }))
    }),
    route(removeDatabaseStandby, ({ caller, params }) => {
      accounts.requireOperator(caller)
      return ok(dropStandby(asking(caller), params.id, params.name))
    }),
    route(placeDatabaseStandby, ({ caller, params, body }) => {
      accounts.requireOperator(caller)
      return ok(placeStandby(asking(caller), params.id, body ?? {}))
    }),
    route(placeDatabaseStandbys, ({ caller }) => {
      accounts.requireOperator(caller)
      return placeStandbys(asking(caller))
    }),
    route(endDatabaseStandby, ({ caller, params }) => {
      accounts.requireOperator(caller)
      return ok(dropStandby(asking(caller), params.id))
    }),
    route(listDatabaseStandbys, ({ caller }) => {
      accounts.requireOperator(caller)
      return listStandbys(store)
    }),
  ]
}

function render(row: nodesAdmin.ListedNode, incarnation: number): ClusterNode {
  return {
    name: row.name,
    state: row.state,
    address: row.advertise,
    version: row.version,
    start_time: Math.floor(row.started_at / 1_000),
    ...(row.region !== null && { region: row.region }),
    databases: row.databases,
    partitions: row.partitions,
    leader: row.leader > 0,
    answering: row.incarnation === incarnation,
  }
}
