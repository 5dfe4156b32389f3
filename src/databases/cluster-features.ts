/** What a node of a cluster does about databases together with other nodes. */

import type { ChangeDeps } from './deps.js'
import type { ServingSettings } from './directory.js'
import { type Moves, type MovesSettings, movesOf } from './moves/index.js'
import { type Replicas, replicasOf } from './replicas/index.js'
import { SetAsideFiles } from './set-aside.js'
import { type Standbys, standbysOf } from './standbys/index.js'

/** All undefined on a server that is alone. */
export interface ClusterFeatures {
  readonly moves: Moves | undefined
  readonly standbys: Standbys | undefined
  readonly replicas: Replicas | undefined
  readonly setAside: SetAsideFiles | undefined
}

/** Builds what databases do with other nodes. */
export function createClusterFeatures(deps: ChangeDeps & MovesSettings, serving: ServingSettings): ClusterFeatures {
  const moves = movesOf(deps)
  const standbys = standbysOf(deps, moves)
  const { node } = deps.settings
  const setAside = deps.cluster && node !== undefined ? new SetAsideFiles({ ...deps, node }) : undefined
  return { moves, standbys, replicas: replicasOf({ ...deps, serving, moves, standbys }), setAside }
}
