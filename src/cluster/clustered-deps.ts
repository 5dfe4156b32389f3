import type { Clock } from '../base/index.js'
import type { Store } from '../store/index.js'
import type { ClusterMeter, Logger } from '../telemetry/index.js'
import type { OnPeerRequest, OnTunnel, PeerLink } from './peer-link.js'
import type { NodeIdentity } from './registration.js'
import type { Incarnation } from './types.js'

/** What a node of a cluster is built from. */
export interface ClusteredDeps {
  readonly store: Store
  /** The same store over separate connections, so that no other operation delays a beat. */
  readonly upkeep: Store
  readonly identity: NodeIdentity
  /** Makes the link to the other nodes. */
  readonly link: (how: { incarnation: () => Incarnation; onRequest: OnPeerRequest; onTunnel: OnTunnel }) => PeerLink
  readonly clock: Clock
  /** Monotonic time, milliseconds. Default: that of the process. */
  readonly monotonicMs?: () => number
  readonly logger: Logger
  readonly meter: ClusterMeter
  /** Called once, when this incarnation was declared dead. The process must then end. */
  readonly onDead: (error: Error) => void
}
