import type { Clock } from '../../base/index.js'
import type { GatewayLogger } from '../deps.js'
import type { LinkIdentity } from './greeting.js'
import type { ReplyLimits } from './reply-gate.js'

/** The collaborators and settings of a link. */
export interface LinkOptions {
  /** Resolves to the path of the engine's socket; waits while the engine starts. */
  readonly locate: (signal: AbortSignal) => Promise<string>
  readonly identity: LinkIdentity
  /** Called for each chunk of replies: throws the `HomeportError` of a node that may not serve the database now. */
  readonly checkHome?: (() => void) | undefined
  /** Called for each chunk of replies; see `HomeControl`. */
  readonly confirm?: (() => Promise<void> | undefined) | undefined
  /** Default: no limits. */
  readonly replyLimits?: ReplyLimits
  /**
   * Whether sinks get chunks of replies lent, in memory that is reused, or given, in memory of their own. `lent` suits
   * connections with many replies. Default: `given`.
   */
  readonly replies?: 'lent' | 'given'
  /** Number of refused dials after which the link gives up. Default: 40, about a second. */
  readonly maxDials?: number
  readonly clock: Clock
  readonly logger: GatewayLogger
}
