import type { Clock, TargetPolicy } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import type { Store } from '../../store/index.js'
import type { Logger, QueueMeter, Tracer } from '../../telemetry/index.js'
import type { RequestSender } from '../sending/sender.js'

/** What the dispatcher is built from. */
export interface DispatcherDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly meter: QueueMeter
  /** Requests in flight at once, without slow ones. */
  readonly concurrency: number
  /** Longest time of one attempt. */
  readonly timeoutMs: number
  /** Bytes kept of each response body. */
  readonly keepBytes: number
  /** How long `stop` waits for requests in flight. */
  readonly graceMs: number
  /** Current signing key of an account. */
  readonly signingKey: (accountId: string) => string
  /** Which destinations may be contacted. */
  readonly targets: TargetPolicy
  /** Sent as `Upstash-Region`. */
  readonly region: string
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
  readonly cluster: Cluster
  /** Makes the requests. Default: over HTTP. */
  readonly sender?: RequestSender | undefined
}
