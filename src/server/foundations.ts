import type { ClientMemoryBudget, ConnectionLimiter } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import type { Config } from '../config/index.js'
import type { DatabasesDeps, loadPlans } from '../databases/index.js'
import type { probeEngine } from '../fleet/index.js'
import type { ServerCertificate } from '../gateway/index.js'
import type { HeavyRequests, NotReady } from '../http/index.js'
import type { BackupPlace } from '../service-backup/index.js'
import type { Store } from '../store/index.js'
import type { Logger, Problems, RecentLines, ServerMeters, Tracer } from '../telemetry/index.js'

/** What exists before any service: every service is built from it. */
export interface Foundations {
  readonly config: Config
  readonly logger: Logger
  /** The newest lines of the log. */
  readonly recentLines: RecentLines
  readonly problems: Problems
  readonly engine: Awaited<ReturnType<typeof probeEngine>>
  readonly plans: Awaited<ReturnType<typeof loadPlans>>
  /** Undefined: the local certificate authority is unusable, so databases with TLS are not served. */
  readonly tls: ServerCertificate | undefined
  readonly store: Store
  /** The nodes that use the store, and the tasks of this one. */
  readonly cluster: Cluster
  /** Why this node of a cluster should get no requests now. */
  readonly notReady: () => NotReady | undefined
  readonly clientMemory: ClientMemoryBudget
  readonly connectionLimiter: ConnectionLimiter
  readonly heavy: HeavyRequests
  readonly meters: ServerMeters
  /** The object storage where backups are kept besides the disk. */
  readonly objectStorage: DatabasesDeps['objectStorage']
  /** Parses the place of a backup of the whole service; `undefined` if the text is no such place. */
  readonly serviceBackupPlace: (to: string) => BackupPlace | undefined
  /** Absent while traces are off. */
  readonly tracer: Tracer | undefined
}
