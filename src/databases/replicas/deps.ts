import type { Cluster } from '../../cluster/index.js'
import type { ChangeDeps, ReadControl } from '../deps.js'

/** What replicas at other nodes are built from. */
export interface ReplicasDeps
  extends Pick<ChangeDeps, 'store' | 'fleet' | 'clock' | 'logger' | 'plans' | 'placement' | 'directory' | 'sleep'> {
  /** The name of this node. */
  readonly node: string
  /** The region that this node serves; undefined: all, so it needs no other nodes. */
  readonly region: string | undefined
  readonly cluster: Pick<Cluster, 'ask' | 'handle' | 'tunnel' | 'peers' | 'serve' | 'onNodeGone' | 'incarnation'>
  readonly reads: ReadControl
  /** Whether this node may serve a database now. */
  readonly mayServe: (databaseId: string) => boolean
  /** Whether answers of a database wait for its standby. */
  readonly isReplicated: (databaseId: string) => boolean
  /** Whether this node has files of a database for another reason: it is the home, or keeps or receives a copy of it. */
  readonly hasOther: (databaseId: string) => boolean
}
